#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What an S4 kernel is made of: A = diag(w) - P P* over N/2 conjugate pairs. Complex numbers are real pairs on the last axis.
struct S4Parameters {
  at::Tensor log_dt;      ///< (H)
  at::Tensor inv_w_real;  ///< (n_ssm, N/2): Re w = -exp of it
  at::Tensor w_imag;      ///< (n_ssm, N/2): Im w
  at::Tensor P;           ///< (1, n_ssm, N/2, 2)
  at::Tensor B;           ///< (1, n_ssm, N/2, 2)
  at::Tensor C;           ///< (directions, H, N/2, 2): C~ = C (I - Abar^period) of a kernel, C itself of s4_power_product
};

/// The first `length` of K_l = 2 Re sum_n C_n (Abar^l Bbar)_n, Abar and Bbar bilinear, by the values of its generating function at the
/// `period`-th roots of unity; channel h has the state matrix h mod n_ssm.
///
/// With w, P, B, C~ of a channel, w times dt, s and c the sine and cosine of pi j / period, d_n = (2 i s)^2 - 2 Re(w_n) c 2 i s + |w_n|^2
/// c^2:
///   R(v) = sum_n (4 i s Re v_n - 2 c Re(v_n w_n*)) / d_n = c sum over both of each pair of v / (z - w), z = 2 i s / c
///   K^_j = (c + i s) dt [R(B C~) - dt R(B P*) R(P C~) c / (1 + dt c R(P P*))], and K = irfft(K^).
/// c is in the numerator, so the infinite z of an even period (s = 1) is as good a node as any. The sums are real products of all v by 1 /
/// d, channels in blocks, so (H, N, period) is never there at once; the backward pass computes each block again. Shapes: -> (directions, H,
/// length), length <= period. Precision: that of the parameters, float32 at least, autocast or not. Source: arXiv:2111.00396 algorithm 1,
/// appendix C.3. Must equal s4_kernel_naive().
at::Tensor s4_kernel(const S4Parameters& parameters, int64_t period, int64_t length);

/// C Abar^power, (directions, H, N/2, 2), by repeated squaring of the dense real Abar in float64; no gradient.
at::Tensor s4_power_product(const S4Parameters& parameters, int64_t power);

/// The same kernel by the recurrence x_{l+1} = Abar x_l with dense matrices in plain complex<double> on the CPU, C found from C~ by
/// elimination (C = C~ where period is 0); shares no code with it; no gradient.
at::Tensor s4_kernel_naive(const S4Parameters& parameters, int64_t period, int64_t length);

/// Forward FLOPs, once a batch.
double s4_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t period);

}  // namespace spt::models
