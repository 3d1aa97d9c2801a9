#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What an S4D kernel is made of. Complex numbers are real pairs on the last axis.
struct S4dParameters {
  at::Tensor log_dt;      ///< (H)
  at::Tensor inv_w_real;  ///< (n_ssm, N/2): Re A = -exp of it
  at::Tensor w_imag;      ///< (n_ssm, N/2): Im A
  at::Tensor B;           ///< (n_ssm, N/2, 2)
  at::Tensor C;           ///< (directions, H, N/2, 2)
  bool bilinear = true;   ///< else zero-order hold
};

/// K_l = 2 Re sum_n C_n Bbar_n Abar_n^l over N/2 conjugate pairs; channel h has the state matrix h mod n_ssm.
///
/// bilinear: Abar = (1 + dt A / 2) / (1 - dt A / 2), Bbar = dt B / (1 - dt A / 2); zoh: Abar = exp(dt A), Bbar = (Abar - 1) B / A.
/// Shapes: -> (directions, H, L). Powers in blocks, z^(i + T j) = z^i z^(T j), so about 2 sqrt(L) exponentials a mode, then one real matrix
/// product a channel. Precision: that of the parameters, float32 at least, autocast or not.
/// Source: arXiv:2206.11893 eq. (4)-(6). Must equal s4d_kernel_naive().
at::Tensor s4d_kernel(const S4dParameters& parameters, int64_t length);

/// The same by the recurrence x_{l+1} = Abar x_l, lag by lag, in plain complex<double> on the CPU; shares no code with it; no gradient.
at::Tensor s4d_kernel_naive(const S4dParameters& parameters, int64_t length);

/// Forward FLOPs, once a batch.
double s4d_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length);

}  // namespace spt::models
