#include "models/layers/linear.h"

#include <torch/torch.h>

#include <cmath>

namespace spt::models {

Linear::Linear(int64_t inputs, int64_t outputs) {
  weight = register_parameter("weight", torch::empty({outputs, inputs}));
  bias = register_parameter("bias", torch::empty({outputs}));
}

at::Tensor Linear::forward(const at::Tensor& x) const { return torch::linear(x, weight, bias); }

void Linear::reset_parameters(const Stream& init, const std::string& prefix) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  draw_uniform(weight, init, prefix + "weight", -bound, bound);
  draw_uniform(bias, init, prefix + "bias", -bound, bound);
}

ParameterRole Linear::role(const std::string& name) const { return name == "bias" ? ParameterRole::kBias : ParameterRole::kMatrix; }

Embedding::Embedding(int64_t vocabulary, int64_t width) { weight = register_parameter("weight", torch::empty({vocabulary, width})); }

at::Tensor Embedding::forward(const at::Tensor& ids) const { return torch::embedding(weight, ids); }

void Embedding::reset_parameters(const Stream& init, const std::string& prefix) { draw_normal(weight, init, prefix + "weight", 1.0); }

ParameterRole Embedding::role(const std::string&) const { return ParameterRole::kEmbedding; }

}  // namespace spt::models
