#include <torch/torch.h>

#include "protocols/optimizer.h"
#include "protocols/published_objective.h"
#include "protocols/schedule.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"

// Optimizer groups and short training runs: always the published rules (README.md).
namespace spt::reference {
namespace {

using protocols::OptimizerRules;

std::optional<double> optional_number(const Case& c, const nlohmann::json& json) {
  if (json.is_null()) return {};
  if (!json.is_number()) throw Error("{}: a rate of ssm_lr is {}", c.name(), json.type_name());
  return json.get<double>();
}

/// Rates of the state space: absent or null: the global one; a number: all three; {dt, A, B}: each.
void read_state_rates(const Case& c, OptimizerRules& rules) {
  const nlohmann::json& body = c.options().at("body");
  if (!body.contains("ssm_lr")) return;
  const nlohmann::json& given = body.at("ssm_lr");
  if (!given.is_object()) {
    rules.lr_dt = rules.lr_a = rules.lr_b = optional_number(c, given);
    return;
  }
  JsonReader reader(given, c.where("ssm_lr"));
  rules.lr_dt = optional_number(c, reader.at("dt"));
  rules.lr_a = optional_number(c, reader.at("A"));
  rules.lr_b = optional_number(c, reader.at("B"));
  reader.finish();
}

OptimizerRules published_rules(const Case& c, JsonReader& options) {
  if (options.get<std::string>("optimizer") != "adamw") throw Error("{}: the only optimizer known is adamw", c.name());
  OptimizerRules rules;
  rules.name = "paper";
  rules.lr = options.get<double>("lr");
  rules.weight_decay = options.get<double>("weight_decay");
  read_state_rates(c, rules);
  return rules;
}

/// A rate of 0 makes a state space tensor a buffer. Returns the names of those.
std::vector<std::string> freeze_at_rate_zero(models::Model& model, const OptimizerRules& rules) {
  using models::ParameterRole;
  const auto rate = [&](ParameterRole role) {
    return role == ParameterRole::kStateDt  ? rules.lr_dt
           : role == ParameterRole::kStateA ? rules.lr_a
           : role == ParameterRole::kStateB ? rules.lr_b
                                            : std::nullopt;
  };
  std::vector<std::string> frozen;
  for (auto& parameter : model.named_parameters())
    if (rate(model.role(parameter.key())) == 0.0) {
      parameter.value().requires_grad_(false);
      frozen.push_back(parameter.key());
    }
  return frozen;
}

void compare_groups(Case& c, const std::vector<protocols::TrainedTensor>& tensors) {
  std::map<std::string, protocols::TensorRule> want;
  for (const auto& row : c.json().at("groups")) {
    JsonReader reader(row, c.where("groups"));
    want[reader.get<std::string>("tensor")] = {reader.get<double>("lr"), reader.get<double>("weight_decay")};
    reader.finish();
  }
  for (const protocols::TrainedTensor& tensor : tensors) {
    const auto found = want.find(tensor.name);
    c.check(tensor.name, found != want.end() && found->second == tensor.rule,
            fmt::format("lr {} and weight decay {}, expected {}", tensor.rule.lr, tensor.rule.weight_decay,
                        found == want.end() ? "no such tensor" : fmt::format("{} and {}", found->second.lr, found->second.weight_decay)));
    if (found != want.end()) want.erase(found);
  }
  for (const auto& [name, rule] : want) c.check(name, false, "is not trained");
}

at::Tensor case_loss(const Case& c, const std::string& name, const at::Tensor& output, const at::Tensor& target) {
  if (name == "cross_entropy") return protocols::published::cross_entropy(output, target);
  if (name == "masked_mae") return protocols::published::masked_mae(output, target);
  throw Error("{}: unknown loss '{}'", c.name(), name);
}

struct CaseBatch {
  models::ModelInput input;
  at::Tensor target;
};

std::vector<CaseBatch> case_batches(Case& c) {
  std::vector<CaseBatch> batches;
  for (int i = 0; c.has(fmt::format("input.batch{}.x", i)); ++i) {
    const std::string name = fmt::format("batch{}.", i);
    const at::Tensor x = c.input(name + "x"), lengths = c.has("input." + name + "lengths") ? c.input(name + "lengths") : at::Tensor();
    batches.push_back({model_input(x, lengths), c.input(name + "y")});
  }
  if (batches.empty()) throw Error("{}: no batch", c.name());
  return batches;
}

}  // namespace

void optimizer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  const OptimizerRules rules = published_rules(c, options);
  options.finish();
  std::vector<std::string> buffers = freeze_at_rate_zero(*model, rules);
  compare_groups(c, protocols::trained_tensors(*model, rules));
  for (const auto& buffer : model->named_buffers()) buffers.push_back(buffer.key());
  std::sort(buffers.begin(), buffers.end());
  auto want = c.json().value("buffers", std::vector<std::string>{});
  std::sort(want.begin(), want.end());
  c.check("buffers", buffers == want, fmt::format("are [{}], expected [{}]", fmt::join(buffers, ", "), fmt::join(want, ", ")));
}

void training_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  const OptimizerRules rules = published_rules(c, options);
  const auto loss_name = options.get<std::string>("loss"), schedule = options.get<std::string>("schedule");
  const auto steps = options.get<int64_t>("steps"), warmup = options.get<int64_t>("warmup_steps");
  options.finish();
  load_strictly(*model, c.take("weight."), c.name());
  freeze_at_rate_zero(*model, rules);
  compare_groups(c, protocols::trained_tensors(*model, rules));
  protocols::AdamW optimizer(protocols::trained_tensors(*model, rules), {});
  const std::vector<CaseBatch> batches = case_batches(c);
  std::vector<double> losses, factors;
  for (int64_t step = 0; step < steps; ++step) {
    const CaseBatch& batch = batches[step % static_cast<int64_t>(batches.size())];
    optimizer.zero_grad();
    const at::Tensor loss = case_loss(c, loss_name, model->forward(batch.input), batch.target);
    loss.backward();
    losses.push_back(loss.item<double>());
    factors.push_back(protocols::schedule_factor({.name = schedule, .steps = steps, .warmup = warmup}, step));
    optimizer.step(factors.back());
  }
  c.compare_output("loss", torch::tensor(losses, torch::kFloat64));
  c.compare_output("lr_factor", torch::tensor(factors, torch::kFloat64));
  for (const auto& state : {model->named_parameters(), model->named_buffers()})
    for (const auto& tensor : state) c.compare_output("final." + tensor.key(), tensor.value(), "gradient");
}

}  // namespace spt::reference
