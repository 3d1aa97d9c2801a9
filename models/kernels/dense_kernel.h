#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What the kernel of a state space with a full state matrix is made of; all real.
struct DenseParameters {
  at::Tensor log_dt;  ///< (H)
  at::Tensor A;       ///< (n_ssm, N, N)
  at::Tensor B;       ///< (n_ssm, N)
  at::Tensor C;       ///< (directions, H, N)
};

/// K_l = C Abar^l Bbar, Abar = (I - dt A / 2)^-1 (I + dt A / 2), Bbar = (I - dt A / 2)^-1 dt B; channel h has state matrix h mod n_ssm.
///
/// Shapes: -> (directions, H, L). l = T j + i: C Abar^(T j) and Abar^i Bbar are made by doubling, T near sqrt(L), then one product a
/// channel. Precision: that of the parameters, float32 at least, autocast or not. Must equal dense_kernel_naive(). Source: arXiv:2111.00396
/// eq. (3)-(5).
at::Tensor dense_kernel(const DenseParameters& parameters, int64_t length);

/// The same by the recurrence x_{l+1} = Abar x_l in plain double on the CPU, by elimination of its own; no gradient.
at::Tensor dense_kernel_naive(const DenseParameters& parameters, int64_t length);

/// Forward FLOPs, once a batch. Solving for Abar and Bbar counts as its 2 N^3 / 3 + 2 N^2 (N + 1) multiply-adds do.
double dense_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length);

/// Abar of each (H, N, N), step dt (H).
at::Tensor dense_bilinear(const at::Tensor& A, const at::Tensor& dt);

/// rows (H, R, N) times matrix (H, N, N) to the power, by repeated squaring.
at::Tensor dense_power_product(at::Tensor rows, at::Tensor matrix, int64_t power);

}  // namespace spt::models
