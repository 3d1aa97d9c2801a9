#include "models/kernels/ema_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <bit>
#include <cmath>
#include <limits>

#include "harness/base/error.h"
#include "models/kernels/long_convolution.h"

namespace spt::models {
namespace {

/// T of l = T j + i: near sqrt(L), a power of two.
int64_t ema_block(int64_t length) { return int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2); }

/// exp(log_q l) for l = 0, step .. on a new last axis: (R, N, count).
at::Tensor ema_powers(const at::Tensor& log_q, int64_t count, int64_t step) {
  return at::exp(log_q.unsqueeze(-1) * at::arange(0, count * step, step, log_q.options()));
}

}  // namespace

at::Tensor ema_kernel(const EmaParameters& parameters, int64_t length) {
  SPT_CHECK(length > 0, "a kernel of length {}", length);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = parameters.delta.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const at::Tensor p = at::sigmoid(parameters.delta.to(precision).squeeze(-1));  // (R, N)
  const at::Tensor decay = at::sigmoid(parameters.alpha.to(precision).squeeze(-1));
  // q = 0 has no finite logarithm; the spacing of numbers at 1 is as good as 0.
  const double spacing = precision == torch::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const at::Tensor log_q = at::log1p((-(p * decay)).clamp_min(spacing - 1));
  const at::Tensor weight = p * parameters.beta.to(precision) * parameters.gamma.to(precision) / std::sqrt(static_cast<double>(p.size(1)));
  const int64_t T = ema_block(length), blocks = (length + T - 1) / T;
  const at::Tensor coarse = (ema_powers(log_q, blocks, T) * weight.unsqueeze(-1)).transpose(1, 2);  // (R, blocks, N)
  return at::bmm(coarse, ema_powers(log_q, T, 1)).flatten(1).narrow(1, 0, length);
}

double ema_kernel_flops(int64_t rows, int64_t state, int64_t length) {
  const int64_t T = ema_block(length), blocks = (length + T - 1) / T;
  return 2.0 * static_cast<double>(rows * state) * static_cast<double>(blocks * T);
}

at::Tensor ema_convolution(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& omega) {
  const int64_t D = x.size(2), L = x.size(1);
  SPT_CHECK((kernel.size(0) == D || kernel.size(0) == 2 * D) && kernel.size(1) == L, "kernel ({}, {}) for x of length {} and width {}",
            kernel.size(0), kernel.size(1), L, D);
  const at::Tensor now = omega.to(kernel.scalar_type()).unsqueeze(-1);  // (D, 1)
  if (kernel.size(0) == D) return long_convolution(x, (kernel + at::constant_pad_nd(now, {0, L - 1})).unsqueeze(0));
  const std::vector<at::Tensor> sides = kernel.split(D, 0), ahead = sides[1].split_with_sizes({1, L - 1}, 1);
  const at::Tensor back = sides[0] + at::constant_pad_nd(now + ahead[0], {0, L - 1});
  // The second kernel of a long convolution begins at lag 1.
  return long_convolution(x, at::stack({back, at::constant_pad_nd(ahead[1], {0, 1})}));
}

}  // namespace spt::models
