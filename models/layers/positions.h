#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// Table of positions: [p, 2m] = sin(p / 10000^(2m/D)), [p, 2m+1] = cos of the same.
///
/// Computed in float64, kept in the dtype and on the device last asked for; not a parameter and not in a checkpoint.
class Sinusoids {
 public:
  explicit Sinusoids(int64_t width) : width_(width) {}
  at::Tensor table(int64_t length, const at::Tensor& like);  ///< (length, D)

 private:
  int64_t width_;
  at::Tensor table_;
};

/// Rotary positions: each pair (2m, 2m+1) of a head turns by the angle p 10000^(-2m/d_k) at position p, counted from 0.
///
/// Shapes: x (B, L, .., d_k) -> the same. Rotated in float32 (float64 in a float64 model).
/// Source: arXiv:2104.09864 eq. (34), interleaved pairs.
class Rotary {
 public:
  explicit Rotary(int64_t head_width) : width_(head_width) {}
  at::Tensor rotate(const at::Tensor& x);

 private:
  int64_t width_;
  at::Tensor table_;  ///< (L, d_k / 2) complex
};

}  // namespace spt::models
