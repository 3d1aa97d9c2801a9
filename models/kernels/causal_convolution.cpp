#include "models/kernels/causal_convolution.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "harness/base/error.h"

namespace spt::models {
namespace {

/// One row: x, y and their gradients (L, E), weight and its gradient (K, E).
template <class T>
struct DepthwiseRow {
  int64_t L, E, K;
  const T *x, *weight, *bias = nullptr, *gy = nullptr;
  T *y = nullptr, *gx = nullptr, *gweight = nullptr, *gbias = nullptr;
};

template <class T>
[[gnu::always_inline]] inline void depthwise_forward(const DepthwiseRow<T>& row) {
  for (int64_t t = 0; t < row.L; ++t) {
    T* y = row.y + t * row.E;
    std::copy_n(row.bias, row.E, y);
    for (int64_t k = std::max<int64_t>(0, row.K - 1 - t); k < row.K; ++k) {
      const T *x = row.x + (t - row.K + 1 + k) * row.E, *weight = row.weight + k * row.E;
#pragma omp simd
      for (int64_t e = 0; e < row.E; ++e) y[e] += weight[e] * x[e];
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void depthwise_backward(const DepthwiseRow<T>& row) {
  std::fill_n(row.gx, row.L * row.E, T(0));
  std::fill_n(row.gweight, row.K * row.E, T(0));
  std::fill_n(row.gbias, row.E, T(0));
  for (int64_t t = 0; t < row.L; ++t) {
    const T* gy = row.gy + t * row.E;
#pragma omp simd
    for (int64_t e = 0; e < row.E; ++e) row.gbias[e] += gy[e];
    for (int64_t k = std::max<int64_t>(0, row.K - 1 - t); k < row.K; ++k) {
      const int64_t from = (t - row.K + 1 + k) * row.E;
      const T *x = row.x + from, *weight = row.weight + k * row.E;
      T *gx = row.gx + from, *gweight = row.gweight + k * row.E;
#pragma omp simd
      for (int64_t e = 0; e < row.E; ++e) {
        gx[e] += weight[e] * gy[e];
        gweight[e] += x[e] * gy[e];
      }
    }
  }
}

// One clone an instruction set of the two precisions.
#define SPT_DEPTHWISE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
SPT_DEPTHWISE_CLONES void run_depthwise(const DepthwiseRow<float>& row) { depthwise_forward(row); }
SPT_DEPTHWISE_CLONES void run_depthwise(const DepthwiseRow<double>& row) { depthwise_forward(row); }
SPT_DEPTHWISE_CLONES void run_depthwise_backward(const DepthwiseRow<float>& row) { depthwise_backward(row); }
SPT_DEPTHWISE_CLONES void run_depthwise_backward(const DepthwiseRow<double>& row) { depthwise_backward(row); }
#undef SPT_DEPTHWISE_CLONES

at::Tensor depthwise_on_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  at::Tensor y = at::empty_like(x);
  const int64_t L = x.size(1), E = x.size(2), K = weight.size(0);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "causal_convolution", [&] {
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        DepthwiseRow<scalar_t> row = {L, E, K, x.const_data_ptr<scalar_t>() + i * L * E, weight.const_data_ptr<scalar_t>()};
        row.bias = bias.const_data_ptr<scalar_t>();
        row.y = y.mutable_data_ptr<scalar_t>() + i * L * E;
        run_depthwise(row);
      }
    });
  });
  return y;
}

/// Gradients of x, weight, bias.
torch::autograd::variable_list depthwise_gradients(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& gy) {
  const int64_t rows = x.size(0), L = x.size(1), E = x.size(2), K = weight.size(0);
  at::Tensor gx = at::empty_like(x), gweight = at::empty({rows, K, E}, x.options()), gbias = at::empty({rows, E}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "causal_convolution_backward", [&] {
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        DepthwiseRow<scalar_t> row = {L, E, K, x.const_data_ptr<scalar_t>() + i * L * E, weight.const_data_ptr<scalar_t>()};
        row.gy = gy.const_data_ptr<scalar_t>() + i * L * E;
        row.gx = gx.mutable_data_ptr<scalar_t>() + i * L * E;
        row.gweight = gweight.mutable_data_ptr<scalar_t>() + i * K * E;
        row.gbias = gbias.mutable_data_ptr<scalar_t>() + i * E;
        run_depthwise_backward(row);
      }
    });
  });
  return {gx, gweight.sum(0), gbias.sum(0)};
}

class CausalConvolution : public torch::autograd::Function<CausalConvolution> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    const at::Tensor input = x.contiguous(), taps = weight.contiguous();
    context->save_for_backward({input, taps});
    return depthwise_on_cpu(input, taps, bias.contiguous());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return depthwise_gradients(saved[0], saved[1], gradients[0].contiguous());
  }
};

}  // namespace

at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  SPT_CHECK(x.dim() == 3 && weight.dim() == 2 && weight.size(1) == x.size(2) && bias.numel() == x.size(2),
            "x has {} dimensions, weight {}, bias {} elements", x.dim(), weight.dim(), bias.numel());
  RECORD_FUNCTION("spt::causal_convolution", std::vector<c10::IValue>({x, weight}));
  if (x.is_cpu() && (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kFloat64))
    return CausalConvolution::apply(x, weight.to(x.scalar_type()), bias.to(x.scalar_type()));
  const at::Tensor filters = weight.t().unsqueeze(1).to(x.scalar_type());  // (E, 1, K)
  return torch::conv1d(x.transpose(1, 2), filters, bias.to(x.scalar_type()), 1, weight.size(0) - 1, 1, x.size(2))
      .narrow(2, 0, x.size(1))
      .transpose(1, 2)
      .contiguous();
}

at::Tensor causal_convolution_naive(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor inputs = plain(x), taps = plain(weight), offsets = plain(bias);
  at::Tensor outputs = torch::empty_like(inputs);
  const auto input = inputs.accessor<double, 3>();
  const auto tap = taps.accessor<double, 2>();
  const auto offset = offsets.accessor<double, 1>();
  auto output = outputs.accessor<double, 3>();
  for (int64_t b = 0; b < input.size(0); ++b)
    for (int64_t t = 0; t < input.size(1); ++t)
      for (int64_t e = 0; e < input.size(2); ++e) {
        output[b][t][e] = offset[e];
        for (int64_t back = 0; back < tap.size(0) && back <= t; ++back)
          output[b][t][e] += tap[tap.size(0) - 1 - back][e] * input[b][t - back][e];
      }
  return outputs;
}

}  // namespace spt::models
