#include "models/kernels/dlr_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr int64_t kDlrChunkNumbers = int64_t{1} << 20;  ///< real numbers of a chunk of powers: 4 MiB in float32

/// The powers conj(z_n)^l, z = exp(lambda), of one chunk of l after the other.
///
/// Conjugated, because Re(W z^l) is then the product of the two real pairs, so neither W nor its gradient is ever rearranged.
class DlrPowers {
 public:
  /// real, imag (N) float64: lambda.
  DlrPowers(const at::Tensor& real, const at::Tensor& imag, at::ScalarType precision, int64_t length) : length_(length) {
    block_ = int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2);  // near sqrt(L)
    blocks_ = (length + block_ - 1) / block_;
    // What is far below the last bit of K_0 is 0: products of denormal numbers cost a hundred times as much as others.
    const double smallest = precision == torch::kFloat64 ? 1e-140 : 1e-18;
    const auto row = [&](int64_t count, int64_t step) {  // (count, N)
      const at::Tensor lags = at::arange(0, count * step, step, real.options()).unsqueeze(1);
      const at::Tensor size = at::exp(lags * real);
      return at::polar(size.masked_fill(size < smallest, 0), -lags * imag).to(at::toComplexType(precision));
    };
    fine_ = row(block_, 1);
    coarse_ = row(blocks_, block_);
    chunk_ = std::clamp(kDlrChunkNumbers / (2 * real.size(0) * block_), int64_t{1}, blocks_);
    buffer_ = at::empty({chunk_, block_, real.size(0)}, fine_.options());
  }

  /// Calls use(first lag, powers (lags, 2 N)); the powers are valid in the call alone.
  template <class Use>
  void for_each_chunk(Use&& use) {
    for (int64_t first = 0; first < blocks_; first += chunk_) {
      const int64_t count = std::min(chunk_, blocks_ - first), lags = std::min(count * block_, length_ - first * block_);
      at::Tensor part = buffer_.narrow(0, 0, count);
      at::mul_out(part, coarse_.narrow(0, first, count).unsqueeze(1), fine_.unsqueeze(0));
      use(first * block_, at::view_as_real(part).flatten(2).flatten(0, 1).narrow(0, 0, lags));
    }
  }

 private:
  int64_t length_, block_, blocks_, chunk_;
  at::Tensor fine_, coarse_, buffer_;
};

/// real, imag (N) float64, W (rows, 2 N) -> (rows, L).
class DlrProduct : public torch::autograd::Function<DlrProduct> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& real, const at::Tensor& imag, const at::Tensor& W,
                            int64_t length) {
    context->save_for_backward({real, imag, W});
    at::Tensor kernel = at::empty({W.size(0), length}, W.options());
    DlrPowers(real, imag, W.scalar_type(), length).for_each_chunk([&](int64_t first, const at::Tensor& powers) {
      at::Tensor part = kernel.narrow(1, first, powers.size(0));
      at::mm_out(part, W, powers.t());
    });
    return kernel;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &real = saved[0], &imag = saved[1], &W = saved[2];
    const int64_t rows = W.size(0), length = gradients[0].size(1);
    const bool moves_lambda = context->needs_input_grad(0) || context->needs_input_grad(1);
    at::Tensor left = gradients[0].contiguous();
    if (moves_lambda) left = at::cat({left, left * at::arange(length, left.options())});
    at::Tensor sums = at::zeros({left.size(0), W.size(1)}, W.options());
    DlrPowers(real, imag, W.scalar_type(), length).for_each_chunk([&](int64_t first, const at::Tensor& powers) {
      sums.addmm_(left.narrow(1, first, powers.size(0)), powers);
    });
    at::Tensor gradient_real, gradient_imag;
    if (moves_lambda) {
      const at::Tensor w = W.view({rows, -1, 2}), s = sums.narrow(0, rows, rows).view({rows, -1, 2});
      gradient_real = (w * s).sum(-1).sum(0).to(real.scalar_type());
      gradient_imag = (w.select(2, 0) * s.select(2, 1) - w.select(2, 1) * s.select(2, 0)).sum(0).to(imag.scalar_type());
    }
    return {gradient_real, gradient_imag, sums.narrow(0, 0, rows), at::Tensor()};
  }
};

}  // namespace

at::Tensor dlr_kernel(const DlrParameters& p, int64_t length) {
  SPT_CHECK(length > 0, "a kernel of length {}", length);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = p.W.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const at::Tensor real = -p.lambda_sqrt_neg_real.to(torch::kFloat64).square(), imag = p.lambda_imag.to(torch::kFloat64);
  const at::Tensor W = p.W.to(precision).contiguous().view({p.W.size(0) * p.W.size(1), 2 * p.W.size(2)});
  return DlrProduct::apply(real, imag, W, length).view({p.W.size(0), p.W.size(1), length});
}

double dlr_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length) {
  return 4.0 * static_cast<double>(directions * channels * state) * static_cast<double>(length);
}

}  // namespace spt::models
