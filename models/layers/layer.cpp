#include "models/layers/layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace spt::models {
namespace {

template <class Draw>
void draw_parameter(at::Tensor& parameter, const Stream& init, const std::string& name, Draw&& draw) {
  const torch::NoGradGuard no_grad;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(init.seed(name));
  at::Tensor value = torch::empty(parameter.sizes(), torch::kFloat32);
  draw(value, generator);
  parameter.copy_(value);
}

/// Splits "a.b.c" into the child "a" and the rest "b.c"; the rest is empty where there is no dot.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? std::pair(path, std::string()) : std::pair(path.substr(0, dot), path.substr(dot + 1));
}

}  // namespace

void Layer::reset_parameters(const Stream& init, const std::string& prefix) { reset_children(*this, init, prefix); }

ParameterRole Layer::role(const std::string& name) const { return role_in_children(*this, name); }

void reset_children(torch::nn::Module& module, const Stream& init, const std::string& prefix) {
  for (const auto& child : module.named_children()) {
    const std::string below = prefix + child.key() + ".";
    if (auto* layer = dynamic_cast<Layer*>(child.value().get())) layer->reset_parameters(init, below);
    else reset_children(*child.value(), init, below);
  }
}

ParameterRole role_in_children(const torch::nn::Module& module, const std::string& name) {
  const auto [head, rest] = split_path(name);
  for (const auto& child : module.named_children()) {
    if (child.key() != head) continue;
    if (const auto* layer = dynamic_cast<const Layer*>(child.value().get())) return layer->role(rest);
    return role_in_children(*child.value(), rest);
  }
  SPT_CHECK(false, "no parameter '{}' in {}", name, module.name());
}

void draw_uniform(at::Tensor parameter, const Stream& init, const std::string& name, double low, double high) {
  draw_parameter(parameter, init, name, [&](at::Tensor& value, const at::Generator& g) { value.uniform_(low, high, g); });
}

void draw_normal(at::Tensor parameter, const Stream& init, const std::string& name, double std) {
  draw_parameter(parameter, init, name, [&](at::Tensor& value, const at::Generator& g) { value.normal_(0.0, std, g); });
}

}  // namespace spt::models
