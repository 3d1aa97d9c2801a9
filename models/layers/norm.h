#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace spt::models {

/// Normalises features, then scales and shifts them: weight and bias (D), 1 and 0 at the start.
class Norm : public Layer {
 public:
  explicit Norm(int64_t width);
  /// x (B, L, D); real (B, L) bool or undefined.
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& real) = 0;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

  at::Tensor weight, bias;
};

/// Over the D features of each position, eps 1e-5.
class LayerNorm : public Norm {
 public:
  using Norm::Norm;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;
};

/// Per feature over batch and length, eps 1e-5, momentum 0.1; running statistics (biased mean, unbiased variance) in evaluation.
///
/// `count_padding`: false: statistics are of real positions alone, and the output at pads is 0 (in training); true: pads count as the rest
/// does, which is what the published code does.
class BatchNorm : public Norm {
 public:
  BatchNorm(int64_t width, bool count_padding);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;
  void reset_parameters(const Stream& init, const std::string& prefix) override;

  at::Tensor running_mean, running_var, num_batches_tracked;

 private:
  at::Tensor normalise(const at::Tensor& rows);
  bool count_padding_;
};

/// `kind`: layer | batch.
std::shared_ptr<Norm> make_norm(const std::string& kind, int64_t width, bool count_padding);

}  // namespace spt::models
