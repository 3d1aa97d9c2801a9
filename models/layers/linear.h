#pragma once

#include "models/layers/layer.h"

namespace spt::models {

/// y = x W^T + b.
///
/// Shapes: x (.., inputs) -> (.., outputs); weight (outputs, inputs), bias (outputs).
/// Random: weight and bias uniform in +-1/sqrt(inputs), LibTorch's default (Kaiming-uniform with a = sqrt 5).
class Linear : public Layer {
 public:
  Linear(int64_t inputs, int64_t outputs);
  at::Tensor forward(const at::Tensor& x) const;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

  at::Tensor weight, bias;
};

/// One row of `weight` (V, D) a token, unscaled.
///
/// Shapes: ids (B, L) int64 -> (B, L, D).
/// Random: N(0, 1), the pad's and the mask's row too.
class Embedding : public Layer {
 public:
  Embedding(int64_t vocabulary, int64_t width);
  at::Tensor forward(const at::Tensor& ids) const;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

  at::Tensor weight;
};

}  // namespace spt::models
