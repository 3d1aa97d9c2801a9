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
  static constexpr const char* kNames[] = {"matrix",  "bias",    "norm",     "embedding",  "position",   "state_a", "state_b",
                                           "state_c", "state_d", "state_dt", "state_real", "state_imag", "state_w", "average"};
  return kNames[static_cast<int>(role)];
}

std::vector<TrainedTensor> trained_tensors(const models::Model& model, const OptimizerRules& rules) {
  std::vector<TrainedTensor> trained;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const ParameterRole role = model.role(item.key());
    TensorRule rule = tensor_rule(rules, role);
    if (rules.first_layer_slip && role == ParameterRole::kStateReal && item.key().starts_with("body.layers.0.")) rule.lr = rules.lr;
    trained.push_back({item.key(), item.value(), role, rule});
  }
  return trained;
}

Optimizer::Optimizer(std::vector<TrainedTensor> tensors, const std::vector<std::string>& slots)
    : tensors_(std::move(tensors)), slot_names_(slots), slots_(slots.size()) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& p = tensors_[i].tensor;
    for (std::vector<at::Tensor>& slot : slots_) slot.push_back(torch::zeros_like(p, torch::MemoryFormat::Preserve).detach());
    step_.push_back(torch::zeros({}, torch::dtype(torch::kFloat32).device(p.device())));
    const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) { return group.first == tensors_[i].rule; });
    if (same == groups_.end()) groups_.push_back({tensors_[i].rule, {i}});
    else same->second.push_back(i);
  }
}

void Optimizer::zero_grad() {
  for (TrainedTensor& t : tensors_) t.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(tensors_.size());
  for (const TrainedTensor& t : tensors_) {
    at::Tensor& gradient = t.tensor.mutable_grad();
    if (!gradient.defined()) gradient = torch::zeros_like(t.tensor, torch::MemoryFormat::Preserve).detach();
    gradients.push_back(gradient);
  }
  return gradients;
}

double Optimizer::clip(double limit) {
  if (tensors_.empty()) return 0;
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  const double norm = torch::linalg_vector_norm(torch::stack(at::_foreach_norm(all, 2)), 2).item<double>();
  // As torch.nn.utils.clip_grad_norm_, 1e-6 included.
  if (limit > 0 && norm > limit - 1e-6) at::_foreach_mul_(all, std::min(1.0, limit / (norm + 1e-6)));
  return norm;
}

void Optimizer::step(double factor) {
  const torch::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients();
  ++steps_;
  if (!step_.empty()) at::_foreach_add_(step_, 1);
  for (const auto& [rule, members] : groups_) {
    Group group{.rule = rule, .parameters = {}, .gradients = {}, .steps = {}, .slots = {}};
    group.slots.resize(slots_.size());
    for (const size_t i : members) {
      group.parameters.push_back(tensors_[i].tensor);
      group.gradients.push_back(all[i]);
      group.steps.push_back(step_[i]);
      for (size_t slot = 0; slot < slots_.size(); ++slot) group.slots[slot].push_back(slots_[slot][i]);
    }
    update(group, rule.lr * factor);
  }
}

std::string Optimizer::first_bad_gradient() const {
  for (const TrainedTensor& t : tensors_) {
    const at::Tensor& gradient = t.tensor.grad();
    if (gradient.defined() && !torch::isfinite(gradient).all().item<bool>()) return t.name;
  }
  return "";
}

std::vector<std::pair<std::string, at::Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (size_t i = 0; i < tensors_.size(); ++i)
    for (size_t slot = 0; slot < slots_.size(); ++slot) state.emplace_back(slot_names_[slot] + "." + tensors_[i].name, slots_[slot][i]);
  return state;
}

void Optimizer::set_steps(int64_t steps) {
  steps_ = steps;
  for (at::Tensor& t : step_) t.fill_(static_cast<double>(steps));
}

AdamW::AdamW(std::vector<TrainedTensor> tensors, Options options)
    : Optimizer(std::move(tensors), {"exp_avg", "exp_avg_sq"}), options_(options) {}

void AdamW::update(Group& g, double lr) {
  at::_fused_adamw_(g.parameters, g.gradients, g.slots[0], g.slots[1], {}, g.steps, lr, options_.beta1, options_.beta2, g.rule.weight_decay,
                    options_.eps, false, false);
}

Adam::Adam(std::vector<TrainedTensor> tensors, Options options)
    : Optimizer(std::move(tensors), {"exp_avg", "exp_avg_sq"}), options_(options) {}

void Adam::update(Group& g, double lr) {
  at::_fused_adam_(g.parameters, g.gradients, g.slots[0], g.slots[1], {}, g.steps, lr, options_.beta1, options_.beta2, g.rule.weight_decay,
                   options_.eps, false, false);
}

Sgd::Sgd(std::vector<TrainedTensor> tensors, Options options)
    : Optimizer(std::move(tensors), options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      options_(options) {}

void Sgd::update(Group& g, double lr) {
  const std::vector<at::Tensor> buffers = g.slots.empty() ? std::vector<at::Tensor>{} : g.slots[0];
  // A buffer of zeros is what a first step would make of none: without dampening both give b = g.
  at::_fused_sgd_(g.parameters, g.gradients, buffers, g.rule.weight_decay, options_.momentum, lr, 0.0, false, false, false);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, std::vector<TrainedTensor> tensors, const OptimizerOptions& options) {
  if (name == "adam") return std::make_unique<Adam>(std::move(tensors), options.adam);
  if (name == "adamw") return std::make_unique<AdamW>(std::move(tensors), options.adam);
  if (name == "sgd") return std::make_unique<Sgd>(std::move(tensors), options.sgd);
  throw Error("{}", unknown_name("optimizer", name, optimizer_names()));
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> kNames = {"adam", "adamw", "sgd"};
  return kNames;
}

}  // namespace spt::protocols
