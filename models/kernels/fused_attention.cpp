#include "models/kernels/fused_attention.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "models/kernels/attention_block.h"

namespace spt::models {
namespace {

constexpr int64_t kLargestHead = 64, kFewestKeys = 32;  // ATen is as fast for shorter rows

/// The kernels of ATen's capability, which the numerics stamp holds; null where there are none.
const AttentionKernels* attention_kernels_in_use() {
  static const AttentionKernels* const in_use = []() -> const AttentionKernels* {
    const std::string capability = at::get_cpu_capability();
    for (const AttentionKernels& kernels : attention_kernels())
      if (kernels.name == (capability == "AVX512" ? "avx512" : capability == "AVX2" ? "avx2" : "")) return &kernels;
    return nullptr;
  }();
  return in_use;
}

/// For each row of the batch the keys that are real.
std::vector<std::vector<int32_t>> real_keys(const at::Tensor& real, int64_t B, int64_t K) {
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(B));
  const at::Tensor mask = real.defined() ? real.contiguous() : at::Tensor();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t j = 0; j < K; ++j)
      if (!mask.defined() || mask.const_data_ptr<bool>()[b * K + j]) rows[b].push_back(static_cast<int32_t>(j));
  return rows;
}

/// Head h of row b of x (B, L, H, d).
HeadRows head_rows(const at::Tensor& x, int64_t b, int64_t h) {
  return {static_cast<float*>(x.data_ptr()) + b * x.stride(0) + h * x.stride(2), x.stride(1)};
}

at::Tensor with_whole_rows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

/// Tensors of one call; each (B, L or K, H, d), log_sum (B, H, L).
struct AttentionCall {
  at::Tensor q, k, v, out, log_sum;
  bool causal;
  std::vector<std::vector<int32_t>> keys;

  AttentionHead head(int64_t b, int64_t h) const {
    return {head_rows(q, b, h), head_rows(k, b, h), head_rows(v, b, h), head_rows(out, b, h),
            log_sum.data_ptr<float>() + (b * q.size(2) + h) * q.size(1)};
  }
  AttentionShape shape(int64_t b) const { return {q.size(1), static_cast<int64_t>(keys[b].size()), q.size(3), keys[b].data(), causal}; }

  /// run(b, h, scratch) for every head; each is the work of one thread, so numbers don't depend on how many there are.
  template <class Run>
  void for_each_head(const Run& run) const {
    const int64_t H = q.size(2);
    int64_t floats = 0;
    for (int64_t b = 0; b < q.size(0); ++b) floats = std::max(floats, attention_kernels_in_use()->scratch_size(shape(b)));
    at::parallel_for(0, q.size(0) * H, 1, [&](int64_t begin, int64_t end) {
      const at::Tensor scratch = at::empty({floats}, at::kFloat);
      for (int64_t i = begin; i < end; ++i) run(i / H, i % H, scratch.data_ptr<float>());
    });
  }
};

/// Takes and gives (B, L, H, d).
class OwnAttention : public torch::autograd::Function<OwnAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& given_real, bool causal) {
    RECORD_FUNCTION("spt::fused_attention", std::vector<c10::IValue>({q, k, v, causal}));
    const at::Tensor real = given_real.value_or(at::Tensor());
    AttentionCall call{with_whole_rows(q),
                       with_whole_rows(k),
                       with_whole_rows(v),
                       at::empty(q.sizes(), q.options()),
                       at::empty({q.size(0), q.size(2), q.size(1)}, q.options()),
                       causal,
                       real_keys(real, q.size(0), k.size(1))};
    call.for_each_head(
        [&](int64_t b, int64_t h, float* scratch) { attention_kernels_in_use()->forward(call.shape(b), call.head(b, h), scratch); });
    context->save_for_backward({call.q, call.k, call.v, real, call.out, call.log_sum});
    context->saved_data["causal"] = causal;
    return call.out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list given) {
    SPT_CHECK(!at::GradMode::is_enabled(), "attention has no second derivative");
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &real = saved[3];
    const AttentionCall call{
        q, k, saved[2], saved[4], saved[5], context->saved_data["causal"].toBool(), real_keys(real, q.size(0), k.size(1))};
    const at::Tensor out_gradient = with_whole_rows(given[0]), q_gradient = at::empty(q.sizes(), q.options());
    // The kernels leave out the keys that are not real.
    const at::Tensor k_gradient = real.defined() ? at::zeros(k.sizes(), k.options()) : at::empty(k.sizes(), k.options());
    const at::Tensor v_gradient = real.defined() ? at::zeros(k.sizes(), k.options()) : at::empty(k.sizes(), k.options());
    call.for_each_head([&](int64_t b, int64_t h, float* scratch) {
      const AttentionGradients gradients{head_rows(out_gradient, b, h), head_rows(q_gradient, b, h), head_rows(k_gradient, b, h),
                                         head_rows(v_gradient, b, h)};
      attention_kernels_in_use()->backward(call.shape(b), call.head(b, h), gradients, scratch);
    });
    return {q_gradient, k_gradient, v_gradient, at::Tensor(), at::Tensor()};
  }
};

bool own_kernels_serve(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto right = [](const at::Tensor& x) { return x.device().is_cpu() && x.scalar_type() == at::kFloat; };
  const int64_t d = q.size(3);
  return attention_kernels_in_use() && right(q) && right(k) && right(v) && d % 8 == 0 && d <= kLargestHead && k.size(2) >= kFewestKeys &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor aten_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& real, bool causal) {
  std::optional<at::Tensor> mask;
  const int64_t B = q.size(0), L = q.size(2), K = k.size(2);
  if (real.defined()) mask = real.view({B, 1, 1, K}).expand({B, 1, L, K});
  if (real.defined() && causal) mask = mask->logical_and(at::ones({L, K}, real.options()).tril());
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, causal && !real.defined());
}

}  // namespace

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& real, bool causal) {
  SPT_CHECK(q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes(), "q has {} dimensions, k {}, v {}", q.dim(), k.dim(), v.dim());
  const at::IntArrayRef to = q.sizes(), from = k.sizes();
  SPT_CHECK(to[0] == from[0] && to[1] == from[1] && to[3] == from[3], "q of sizes {}, k of {}", fmt::join(to, " "), fmt::join(from, " "));
  SPT_CHECK(!real.defined() || (real.scalar_type() == at::kBool && real.sizes() == at::IntArrayRef({from[0], from[2]})),
            "mask of {} elements for {} rows of {} keys", real.numel(), from[0], from[2]);
  if (!own_kernels_serve(q, k, v)) return aten_attention(q, k, v, real, causal);
  std::optional<at::Tensor> mask;  // autograd functions take no undefined tensor
  if (real.defined()) mask = real;
  return OwnAttention::apply(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, causal).transpose(1, 2);
}

}  // namespace spt::models
