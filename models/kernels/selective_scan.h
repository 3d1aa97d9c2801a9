#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What a selective scan reads.
struct SelectiveScanInput {
  at::Tensor u;   ///< (B, L, E)
  at::Tensor dt;  ///< (B, L, E), positive: a step for every position and channel
  at::Tensor A;   ///< (E, N), negative
  at::Tensor B;   ///< (B, L, N)
  at::Tensor C;   ///< (B, L, N)
};

/// h_t = exp(dt_t A) h_{t-1} + dt_t B_t u_t, y_t = C_t . h_t with h (E, N) and h = 0 before the first.
///
/// Shapes: -> y (B, L, E), contiguous. CPU: parallel over rows and blocks of channels; the backward pass keeps one state in 32 positions
/// and recomputes the rest, so memory is O(B L (E + N) + B L E N / 32). Other devices: position by position in ATen operations, with plain
/// autograd and all states. Precision: float32 (exp within 2e-7), or float64 where u has it; never less, autocast or not.
/// Errors: SPT_CHECK of the shapes. Source: arXiv:2312.00752 algorithm 2. Must equal selective_scan_naive().
at::Tensor selective_scan(const SelectiveScanInput& input);

/// The same in ATen operations: what other devices execute.
at::Tensor selective_scan_by_steps(const SelectiveScanInput& input);

/// The same in plain loops of doubles on the CPU; shares no code with it; no gradient.
at::Tensor selective_scan_naive(const SelectiveScanInput& input);

/// Forward FLOPs of a row: two multiply-adds per state and position, into the state and out of it.
double selective_scan_flops(int64_t length, int64_t channels, int64_t state);

}  // namespace spt::models
