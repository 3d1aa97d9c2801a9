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

/// Which two features of a head turn together: (2m, 2m+1), or m of the first half and m of the second.
enum class RotaryPairs { kNeighbours, kHalves };

/// Rotary positions: pair m of the first `width` features of a head turns by the angle p 10000^(-2m/width) at position p, counted from 0;
/// the other features stay.
///
/// Shapes: x (B, L, .., d_k) -> the same, width <= d_k. Rotated in float32 (float64 in a float64 model).
/// Source: arXiv:2104.09864 eq. (34), neighbours; halves and a width below d_k: GPT-NeoX (arXiv:2204.06745 section 2.1).
class Rotary {
 public:
  explicit Rotary(int64_t width, RotaryPairs pairs = RotaryPairs::kNeighbours) : width_(width), pairs_(pairs) {}
  at::Tensor rotate(const at::Tensor& x);

 private:
  at::Tensor rotate_all(const at::Tensor& x);  ///< x of width features

  int64_t width_;
  RotaryPairs pairs_;
  at::Tensor table_;  ///< (L, width / 2) complex
};

}  // namespace spt::models
