#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What the damped moving averages of MEGA are made of: R rows (D, or 2 D where a second half looks ahead), N averages each.
struct EmaParameters {
  at::Tensor delta;  ///< (R, N, 1)
  at::Tensor alpha;  ///< (R, N, 1)
  at::Tensor beta;   ///< (R, N)
  at::Tensor gamma;  ///< (R, N)
};

/// K_l = sum_n p_n beta_n gamma_n q_n^l / sqrt(N), with p = sigmoid(delta), q = 1 - p sigmoid(alpha).
///
/// Shapes: -> (R, L). Powers in blocks, q^(i + T j) = q^i q^(T j), so about 2 sqrt(L) exponentials an average, then one matrix product.
/// Precision: float32, or float64 for float64 parameters; never less, autocast or not. Must equal ema_kernel_naive().
/// Source: arXiv:2209.10655 eq. (3)-(5) and appendix A; published code src/models/sequence/ss/ema.py.
at::Tensor ema_kernel(const EmaParameters& parameters, int64_t length);

/// The same by the recurrence of the state, h <- q h, in double precision on the CPU; no gradient.
at::Tensor ema_kernel_naive(const EmaParameters& parameters, int64_t length);

/// Forward FLOPs, once a batch.
double ema_kernel_flops(int64_t rows, int64_t state, int64_t length);

/// y_t = sum_{j >= 0} K_j x_{t-j} (+ sum_{j >= 0} K'_j x_{t+j} where R = 2 D) + omega x_t.
///
/// Shapes: x (B, L, D), kernel (R, L) with R = D or 2 D, omega (D) -> (B, L, D). Rows 0..D-1 look back, D..2D-1 ahead, both with lag 0.
/// omega and the second lag 0 are added to the first kernel's lag 0, so that one long convolution does all.
at::Tensor ema_convolution(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& omega);

}  // namespace spt::models
