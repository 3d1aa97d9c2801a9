#pragma once

#include <memory>

#include "models/layers/linear.h"

namespace spt::models {

/// y = down(drop(gelu(up(x)))), exact (erf) GELU.
///
/// Shapes: (B, L, D) -> (B, L, D); up (d_ff, D), down (D, d_ff).
class FeedForward : public Layer {
 public:
  FeedForward(int64_t width, int64_t inner, double dropout);
  at::Tensor forward(const at::Tensor& x);

 private:
  double dropout_;
  std::shared_ptr<Linear> up_, down_;
};

}  // namespace spt::models
