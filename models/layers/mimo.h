#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// A diagonal linear recurrence with full matrices in and out: x_t = a x_{t-1} + B u_t, y_t = scale Re(C_0 x_t) + D u_t; with two
/// directions + scale Re(C_1 x'_t), where x'_t = a x'_{t+1} + B u_t (so both see u_t).
struct MimoSystem {
  at::Tensor a;      ///< (2, N): real parts, imaginary parts
  at::Tensor B;      ///< (2 N, D): real parts, then imaginary parts
  at::Tensor C;      ///< (directions, D, N, 2)
  at::Tensor D;      ///< (1, D)
  double scale = 1;  ///< 2 where the N states stand for pairs of conjugates
};

/// Shapes: u (B, L, D) -> (B, L, D). Two real matrix products and a scan (kernels/diagonal_scan.h) a direction.
at::Tensor mimo_forward(const MimoSystem& system, const at::Tensor& u);

/// Forward FLOPs of a row.
double mimo_flops(int64_t length, int64_t d_model, int64_t states, int64_t directions);

}  // namespace spt::models
