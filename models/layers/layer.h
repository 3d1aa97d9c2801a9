#pragma once

#include <torch/nn/module.h>

#include <string>

#include "harness/base/rng.h"
#include "models/architecture.h"

namespace spt::models {

/// A module that knows how its own parameters are drawn and what they are. Defaults: ask the children.
class Layer : public torch::nn::Module {
 public:
  virtual void reset_parameters(const Stream& init, const std::string& prefix);
  virtual ParameterRole role(const std::string& name) const;
};

/// Calls reset_parameters of every Layer below `module`, with `prefix` + its path.
void reset_children(torch::nn::Module& module, const Stream& init, const std::string& prefix);

/// Role of the parameter `name` (a path below `module`), asked of the Layer that owns it.
ParameterRole role_in_children(const torch::nn::Module& module, const std::string& name);

/// The draws. Each is taken in float32 on the CPU from a generator seeded by init.seed(name) and then copied into `parameter`, so neither
/// the model's device and dtype nor the order of construction can change it.
void draw_uniform(at::Tensor parameter, const Stream& init, const std::string& name, double low, double high);
void draw_normal(at::Tensor parameter, const Stream& init, const std::string& name, double std);

}  // namespace spt::models
