#pragma once

#include <memory>

#include "models/layers/linear.h"

namespace spt::models {

enum class Activation { kGelu, kSilu };

/// y = down(drop(f(up(x)))), f the exact (erf) GELU or SiLU.
///
/// Shapes: (B, L, D) -> (B, L, D); up (d_ff, D), down (D, d_ff).
class FeedForward : public Layer {
 public:
  FeedForward(int64_t width, int64_t inner, double dropout, Activation activation = Activation::kGelu);
  at::Tensor forward(const at::Tensor& x);

 private:
  double dropout_;
  Activation activation_;
  std::shared_ptr<Linear> up_, down_;
};

}  // namespace spt::models
