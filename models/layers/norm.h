#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace spt::models {

/// Normalises features, then scales and, where there is a bias, shifts them: weight starts at 1, bias at 0.
class Norm : public Layer {
 public:
  explicit Norm(int64_t width, bool has_bias = true);
  /// x (B, L, D); real (B, L) bool or undefined.
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& real) = 0;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

  at::Tensor weight, bias;  ///< (D); bias undefined where there is none
};

/// Over the D features of each position, eps 1e-5.
class LayerNorm : public Norm {
 public:
  explicit LayerNorm(int64_t width) : Norm(width) {}
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

/// y = x / sqrt(mean of x^2 over the D features + eps) * weight, eps 1e-5, no bias. Source: arXiv:1910.07467 eq. (4).
class RmsNorm : public Norm {
 public:
  explicit RmsNorm(int64_t width) : Norm(width, false), width_(width) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;

 private:
  int64_t width_;
};

/// The same with one weight for all features: g x / |x| with g = sqrt(D) weight. Source: arXiv:1910.05895 eq. (5); g starts at sqrt(D)
/// there too.
class ScaleNorm : public Norm {
 public:
  explicit ScaleNorm(int64_t width) : Norm(1, false), width_(width) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;

 private:
  int64_t width_;
};

/// `kind`: layer | batch | rms | scale.
std::shared_ptr<Norm> make_norm(const std::string& kind, int64_t width, bool count_padding);

}  // namespace spt::models
