#include "protocols/init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"
#include "protocols/optimizer.h"

namespace spt::protocols {
namespace {

/// From N(0, kInitStd^2), taken in float32 on the CPU and then copied, so that neither device nor dtype can change a draw.
void redraw(at::Tensor parameter, const Stream& draws, const std::string& name) {
  const torch::NoGradGuard no_grad;
  at::Tensor value = torch::empty(parameter.sizes(), torch::kFloat32);
  value.normal_(0.0, kInitStd, at::make_generator<at::CPUGeneratorImpl>(draws.seed(name)));
  parameter.copy_(value);
}

/// Sums of one role, before its mean is known.
struct InitSums {
  InitGroup group;
  double sum = 0, squares = 0;
};

}  // namespace

const std::vector<std::string>& init_names() {
  static const std::vector<std::string> kNames = {"default", "normal", "normal-state"};
  return kNames;
}

bool is_redrawn(const std::string& init, models::ParameterRole role) {
  if (init == "default") return false;
  if (init == "normal") return true;
  if (init == "normal-state") return role_name(role).starts_with("state_");
  throw Error("{}", unknown_name("init", init, init_names()));
}

void apply_init(models::Model& model, const std::string& init, const Stream& draws) {
  for (const auto& item : model.named_parameters())
    if (item.value().requires_grad() && is_redrawn(init, model.role(item.key()))) redraw(item.value(), draws, item.key());
}

std::vector<InitGroup> init_groups(const models::Model& model, const std::string& init) {
  std::vector<InitSums> all;
  for (const auto& item : model.named_parameters()) {
    const models::ParameterRole role = model.role(item.key());
    const std::string name = role_name(role);
    const bool redrawn = item.value().requires_grad() && is_redrawn(init, role);
    auto found =
        std::find_if(all.begin(), all.end(), [&](const InitSums& s) { return s.group.role == name && s.group.redrawn == redrawn; });
    if (found == all.end()) found = all.insert(all.end(), {.group = {.role = name, .redrawn = redrawn}});
    const at::Tensor values = item.value().detach().to(torch::kCPU, torch::kFloat64);
    ++found->group.tensors;
    found->group.values += values.numel();
    found->sum += values.sum().item<double>();
    found->squares += values.square().sum().item<double>();
  }
  std::vector<InitGroup> groups;
  for (InitSums& sums : all) {
    const double n = static_cast<double>(std::max<int64_t>(1, sums.group.values));
    sums.group.mean = sums.sum / n;
    sums.group.std = std::sqrt(std::max(0.0, sums.squares / n - sums.group.mean * sums.group.mean));
    groups.push_back(sums.group);
  }
  return groups;
}

}  // namespace spt::protocols
