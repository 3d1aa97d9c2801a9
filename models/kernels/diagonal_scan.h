#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// x_t = a x_{t-1} + b_t (reverse: x_t = a x_{t+1} + b_t), x = 0 before the first, elementwise in N complex numbers.
///
/// Shapes: a (2, N): real parts, imaginary parts; b (B, L, 2 N): N real parts, then N imaginary parts, as a real matrix product gives them
/// -> x (B, L, 2 N).
/// One pass over memory each way on the CPU (the backward pass is the scan of the other direction by conj a, and keeps x); log2 L passes
/// on other devices. Precision: float32, or float64 where b has it; never less, autocast or not.
/// Errors: SPT_CHECK of the shapes. Must equal diagonal_scan_naive().
at::Tensor diagonal_scan(const at::Tensor& a, const at::Tensor& b, bool reverse);

/// The same in log2 L passes of ATen operations, x_t += a^s x_{t-s} for s = 1, 2, 4 ..: what other devices execute. |a| <= 1, or it
/// overflows.
at::Tensor diagonal_scan_by_doubling(const at::Tensor& a, const at::Tensor& b, bool reverse);

/// The same in plain complex<double> on the CPU; shares no code with it; no gradient.
at::Tensor diagonal_scan_naive(const at::Tensor& a, const at::Tensor& b, bool reverse);

/// Forward FLOPs of a row: a complex multiply-add, so four real ones, per state and position.
double diagonal_scan_flops(int64_t length, int64_t state);

}  // namespace spt::models
