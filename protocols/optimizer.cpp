#include "protocols/optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

using models::ParameterRole;

std::optional<double> published_state_rate(const OptimizerRules& rules, ParameterRole role) {
  switch (role) {
    case ParameterRole::kStateA:
      return rules.lr_a.value_or(rules.lr);
    case ParameterRole::kStateB:
      return rules.lr_b.value_or(rules.lr);
    case ParameterRole::kStateDt:
      return rules.lr_dt.value_or(rules.lr);
    case ParameterRole::kStateReal:
      return rules.lr_real.value_or(rules.lr);
    case ParameterRole::kStateImag:
      return rules.lr_imag.value_or(rules.lr);
    case ParameterRole::kStateW:
      return rules.lr_w.value_or(rules.lr);
    default:
      return {};
  }
}

TensorRule fair_rule(const OptimizerRules& rules, ParameterRole role) {
  switch (role) {
    case ParameterRole::kMatrix:
      return {rules.lr, rules.weight_decay};
    case ParameterRole::kStateA:
    case ParameterRole::kStateB:
    case ParameterRole::kStateDt:
    case ParameterRole::kStateReal:
    case ParameterRole::kStateImag:
    case ParameterRole::kStateW:
      return {std::min(rules.lr, rules.state_lr), 0.0};
    default:
      return {rules.lr, 0.0};
  }
}

}  // namespace

TensorRule tensor_rule(const OptimizerRules& rules, ParameterRole role) {
  if (rules.name == "fair") return fair_rule(rules, role);
  if (rules.name == "paper") {
    const std::optional<double> own = published_state_rate(rules, role);
    return own ? TensorRule{*own, 0.0} : TensorRule{rules.lr, rules.weight_decay};
  }
  throw Error("{}", unknown_name("optimizer rule set", rules.name, std::vector<std::string>{"fair", "paper"}));
}

std::string role_name(ParameterRole role) {
  static constexpr const char* kNames[] = {"matrix",  "bias",    "norm",    "embedding", "position",
                                           "state_a", "state_b", "state_c", "state_d",   "state_dt",
                                           "state_real", "state_imag", "state_w"};
  return kNames[static_cast<int>(role)];
}

std::vector<TrainedTensor> trained_tensors(const models::Model& model, const OptimizerRules& rules) {
  std::vector<TrainedTensor> trained;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const ParameterRole role = model.role(item.key());
    trained.push_back({item.key(), item.value(), role, tensor_rule(rules, role)});
  }
  return trained;
}

AdamW::AdamW(std::vector<TrainedTensor> tensors, Options options) : tensors_(std::move(tensors)), options_(options) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& p = tensors_[i].tensor;
    exp_avg_.push_back(torch::zeros_like(p, torch::MemoryFormat::Preserve).detach());
    exp_avg_sq_.push_back(torch::zeros_like(p, torch::MemoryFormat::Preserve).detach());
    step_.push_back(torch::zeros({}, torch::dtype(torch::kFloat32).device(p.device())));
    const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) { return group.first == tensors_[i].rule; });
    if (same == groups_.end())
      groups_.push_back({tensors_[i].rule, {i}});
    else
      same->second.push_back(i);
  }
}

void AdamW::zero_grad() {
  for (TrainedTensor& t : tensors_) t.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(tensors_.size());
  for (const TrainedTensor& t : tensors_) {
    at::Tensor& gradient = t.tensor.mutable_grad();
    if (!gradient.defined()) gradient = torch::zeros_like(t.tensor, torch::MemoryFormat::Preserve).detach();
    gradients.push_back(gradient);
  }
  return gradients;
}

double AdamW::clip(double limit) {
  if (tensors_.empty()) return 0;
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  const double norm = torch::linalg_vector_norm(torch::stack(at::_foreach_norm(all, 2)), 2).item<double>();
  // As torch.nn.utils.clip_grad_norm_, 1e-6 included.
  if (limit > 0 && norm > limit - 1e-6) at::_foreach_mul_(all, std::min(1.0, limit / (norm + 1e-6)));
  return norm;
}

void AdamW::step(double factor) {
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  ++steps_;
  if (!step_.empty()) at::_foreach_add_(step_, 1);
  for (const auto& [rule, members] : groups_) {
    std::vector<at::Tensor> p, g, m, v, t;
    for (const size_t i : members) {
      p.push_back(tensors_[i].tensor);
      g.push_back(all[i]);
      m.push_back(exp_avg_[i]);
      v.push_back(exp_avg_sq_[i]);
      t.push_back(step_[i]);
    }
    at::_fused_adamw_(p, g, m, v, {}, t, rule.lr * factor, options_.beta1, options_.beta2, rule.weight_decay, options_.eps, false, false);
  }
}

std::string AdamW::first_bad_gradient() const {
  for (const TrainedTensor& t : tensors_) {
    const at::Tensor& gradient = t.tensor.grad();
    if (gradient.defined() && !torch::isfinite(gradient).all().item<bool>()) return t.name;
  }
  return "";
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::state() const {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    state.emplace_back("exp_avg." + tensors_[i].name, exp_avg_[i]);
    state.emplace_back("exp_avg_sq." + tensors_[i].name, exp_avg_sq_[i]);
  }
  return state;
}

void AdamW::set_steps(int64_t steps) {
  steps_ = steps;
  for (at::Tensor& t : step_) t.fill_(static_cast<double>(steps));
}

}  // namespace spt::protocols
