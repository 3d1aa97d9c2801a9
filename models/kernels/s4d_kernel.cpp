#include "models/kernels/s4d_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <bit>

#include "harness/base/error.h"

namespace spt::models {
namespace {

/// T of l = T j + i: near sqrt(L), a power of two.
int64_t power_block(int64_t length) { return int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2); }

/// exp(x i step), i < count, on a new last axis; in real arithmetic, whose exp, cos and sin are vectorised as the complex exp is not.
at::Tensor power_row(const at::Tensor& x, int64_t count, int64_t step) {
  const at::Tensor steps = at::arange(0, count * step, step, x.options().dtype(c10::toRealValueType(x.scalar_type())));
  const at::Tensor size = at::exp(at::real(x).unsqueeze(-1) * steps), angle = at::imag(x).unsqueeze(-1) * steps;
  return at::complex(size * at::cos(angle), size * at::sin(angle));
}

/// Re sum_n weight[c, h, n] exp(log_base[h, n] l), l < length: (C, H, M), (H, M) complex -> (C, H, L).
at::Tensor power_sum(const at::Tensor& weight, const at::Tensor& log_base, int64_t length) {
  const int64_t T = power_block(length), blocks = (length + T - 1) / T, C = weight.size(0), H = weight.size(1), M = weight.size(2);
  const at::Tensor starts = power_row(log_base, blocks, T).transpose(1, 2);                             // (H, blocks, M)
  const at::Tensor coarse = (weight.transpose(0, 1).unsqueeze(2) * starts.unsqueeze(1)).flatten(1, 2);  // (H, C blocks, M)
  const at::Tensor fine = at::view_as_real(power_row(log_base, T, 1));                                  // (H, M, T, 2)
  const at::Tensor left = at::view_as_real(coarse.conj().resolve_conj()).flatten(2);                    // (H, C blocks, 2 M): Re, -Im
  const at::Tensor right = fine.permute({0, 1, 3, 2}).reshape({H, 2 * M, T});
  return at::bmm(left, right).view({H, C, blocks * T}).narrow(2, 0, length).transpose(0, 1);
}

at::Tensor complex_pairs(const at::Tensor& pairs, at::ScalarType precision) { return at::view_as_complex(pairs.to(precision)); }

}  // namespace

at::Tensor s4d_kernel(const S4dParameters& p, int64_t length) {
  SPT_CHECK(length > 0, "a kernel of length {}", length);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = p.log_dt.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const int64_t copies = p.log_dt.size(0) / p.w_imag.size(0);
  const at::Tensor dt = p.log_dt.to(precision).exp().unsqueeze(-1);                                                 // (H, 1)
  const at::Tensor A = at::complex(-p.inv_w_real.to(precision).exp(), p.w_imag.to(precision)).repeat({copies, 1});  // (H, N/2)
  const at::Tensor weight = complex_pairs(p.C, precision) * complex_pairs(p.B, precision).repeat({copies, 1});      // (C, H, N/2)
  const at::Tensor dtA = dt * A;
  if (!p.bilinear) return power_sum(2 * weight * ((dtA.exp() - 1) / A), dtA, length);
  const at::Tensor half = dtA / 2;
  return power_sum(2 * weight * (dt / (1 - half)), at::log((1 + half) / (1 - half)), length);
}

double s4d_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length) {
  const int64_t T = power_block(length), blocks = (length + T - 1) / T;
  return 2.0 * static_cast<double>(directions * channels * state) * static_cast<double>(blocks * T);
}

}  // namespace spt::models
