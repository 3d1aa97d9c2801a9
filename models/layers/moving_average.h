#pragma once

#include "models/layers/layer.h"

namespace spt::models {

/// Damped exponential moving averages, N a feature: y = K * x + omega x with the kernel of ema_kernel(); a second kernel looks ahead where
/// `bidirectional`.
///
/// Shapes: x (B, L, D) -> (B, L, D). delta, alpha (R, N, 1), beta, gamma (R, N), omega (D); R = D, or 2 D where bidirectional.
/// Random: delta, alpha ~ N(0, 0.2^2); beta ~ N(+1, 0.02^2), N(-1, 0.02^2) in turn along N; gamma, omega ~ N(0, 1).
/// Source: arXiv:2209.10655 section 3.1; published code src/models/sequence/ss/ema.py, but in the precision of x (there: float32).
class MovingAverage : public Layer {
 public:
  MovingAverage(int64_t width, int64_t state, bool bidirectional);
  at::Tensor kernel(int64_t length) const;  ///< (R, length)
  at::Tensor forward(const at::Tensor& x) const;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  at::Tensor delta_, alpha_, beta_, gamma_, omega_;
};

}  // namespace spt::models
