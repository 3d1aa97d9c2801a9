#include "tests/reference/training.h"

#include <torch/torch.h>

#include <algorithm>

#include "protocols/published_objective.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/schedules.h"

// Optimizer groups and short training runs: always the published rules (README.md).
namespace spt::reference {
namespace {

using protocols::OptimizerRules;

std::optional<double> optional_rate(JsonReader& reader, const char* key) {
  return reader.has(key) ? std::optional(reader.get<double>(key)) : (reader.get<double>(key, 0), std::nullopt);
}

void read_rates_by_matrix(JsonReader& reader, OptimizerRules& rules) {
  rules.lr_dt = optional_rate(reader, "dt");
  rules.lr_a = optional_rate(reader, "A");
  rules.lr_b = optional_rate(reader, "B");
}

void read_rates_by_part(const Case& c, JsonReader& reader, OptimizerRules& rules) {
  rules.lr_real = optional_rate(reader, "lambda_real");
  rules.lr_imag = optional_rate(reader, "lambda_imag");
  rules.lr_w = optional_rate(reader, "W");
  if (rules.lr_real) return;
  rules.lr_real = rules.lr_imag;
  rules.first_layer_slip = c.profile() != "fair";
}

void read_state_rates(const Case& c, const nlohmann::json& body, OptimizerRules& rules) {
  if (!body.contains("ssm_lr") || body.at("ssm_lr").is_null()) return;
  const nlohmann::json& given = body.at("ssm_lr");
  if (given.is_object()) {
    JsonReader reader(given, c.where("ssm_lr"));
    const bool by_part = given.contains("lambda_real") || given.contains("lambda_imag") || given.contains("W");
    by_part ? read_rates_by_part(c, reader, rules) : read_rates_by_matrix(reader, rules);
    reader.finish();
    return;
  }
  if (!given.is_number()) throw Error("{}: ssm_lr is {}, not a number, an object or null", c.name(), given.type_name());
  const auto rate = given.get<double>();
  rules.lr_dt = rules.lr_a = rules.lr_b = rules.lr_real = rules.lr_imag = rules.lr_w = rate;
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

std::vector<CaseBatch> case_batches(Case& c, const std::string& prefix) {
  std::vector<CaseBatch> batches;
  for (int i = 0; c.has(fmt::format("input.{}batch{}.x", prefix, i)); ++i) {
    const std::string name = fmt::format("{}batch{}.", prefix, i);
    const at::Tensor x = c.input(name + "x"), lengths = c.has("input." + name + "lengths") ? c.input(name + "lengths") : at::Tensor();
    batches.push_back({model_input(x, lengths), c.input(name + "y")});
  }
  if (batches.empty()) throw Error("{}: no batch", c.name());
  return batches;
}

protocols::OptimizerOptions read_optimizer_settings(const std::string& name, JsonReader& options) {
  protocols::OptimizerOptions settings;
  if (name == "sgd") {
    settings.sgd.momentum = options.get<double>("momentum", 0.0);
    return settings;
  }
  const auto betas = options.get<std::vector<double>>("betas", {settings.adam.beta1, settings.adam.beta2});
  if (betas.size() != 2) throw Error("{}: betas has {} numbers, not two", options.where(), betas.size());
  settings.adam = {betas[0], betas[1], options.get<double>("eps", settings.adam.eps)};
  return settings;
}

/// A case of a run calls its length `steps`.
protocols::Schedule read_run_schedule(const std::string& name, int64_t steps, JsonReader& options) {
  protocols::Schedule schedule{.name = name, .steps = options.get<int64_t>("total_steps", steps)};
  schedule.warmup = options.get<int64_t>("warmup_steps", 0);
  if (name == "multistep") schedule.milestones = options.get<std::vector<int64_t>>("milestones");
  if (name == "step") schedule.step_size = options.get<int64_t>("step_size");
  if (name == "step" || name == "multistep") schedule.gamma = options.get<double>("gamma");
  return schedule;
}

}  // namespace

OptimizerRules published_rules(const Case& c, const nlohmann::json& body, double lr, double weight_decay) {
  OptimizerRules rules{.name = "paper", .lr = lr, .weight_decay = weight_decay};
  read_state_rates(c, body, rules);
  return rules;
}

std::vector<std::string> freeze_at_rate_zero(models::Model& model, const OptimizerRules& rules) {
  std::vector<std::string> frozen;
  if (rules.lr == 0) return frozen;  // nothing is learnt, so no zero is the state space's own
  for (const protocols::TrainedTensor& trained : protocols::trained_tensors(model, rules)) {
    if (trained.rule.lr != 0) continue;
    at::Tensor(trained.tensor).requires_grad_(false);
    frozen.push_back(trained.name);
  }
  return frozen;
}

void compare_groups(Case& c, const nlohmann::json& groups, const std::vector<protocols::TrainedTensor>& tensors) {
  std::map<std::string, protocols::TensorRule> want;
  for (const auto& row : groups) {
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

CaseRun read_run(const Case& c, JsonReader& options) {
  CaseRun run;
  run.loss = options.get<std::string>("loss");
  run.steps = options.get<int64_t>("steps");
  run.optimizer = options.get<std::string>("optimizer", "adamw");
  run.settings = read_optimizer_settings(run.optimizer, options);
  const auto lr = options.get<double>("lr"), weight_decay = options.get<double>("weight_decay", 0.0);
  run.rules = published_rules(c, c.options().at("body"), lr, weight_decay);
  run.schedule = read_run_schedule(options.get<std::string>("schedule", "constant_warmup"), run.steps, options);
  return run;
}

CaseTrajectory train_case_model(Case& c, models::Model& model, const CaseRun& run, const std::string& prefix,
                                const nlohmann::json& groups) {
  freeze_at_rate_zero(model, run.rules);
  compare_groups(c, groups, protocols::trained_tensors(model, run.rules));
  const auto optimizer = protocols::make_optimizer(run.optimizer, protocols::trained_tensors(model, run.rules), run.settings);
  const std::vector<CaseBatch> batches = case_batches(c, prefix);
  CaseTrajectory trajectory;
  for (int64_t step = 0; step < run.steps; ++step) {
    const CaseBatch& batch = batches[step % static_cast<int64_t>(batches.size())];
    optimizer->zero_grad();
    const at::Tensor loss = case_loss(c, run.loss, model.forward(batch.input), batch.target);
    loss.backward();
    trajectory.losses.push_back(loss.item<double>());
    trajectory.factors.push_back(protocols::schedule_factor(run.schedule, step));
    optimizer->step(trajectory.factors.back());
  }
  return trajectory;
}

void compare_tensors(Case& c, const models::Model& model, const std::string& prefix) {
  for (const auto& state : {model.named_parameters(), model.named_buffers()})
    for (const auto& tensor : state) c.compare_output(prefix + tensor.key(), tensor.value(), "gradient");
}

void optimizer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  const auto optimizer = options.get<std::string>("optimizer");
  read_optimizer_settings(optimizer, options);
  protocols::make_optimizer(optimizer, {}, {});  // the name is known
  const auto lr = options.get<double>("lr"), weight_decay = options.get<double>("weight_decay");
  const OptimizerRules rules = published_rules(c, c.options().at("body"), lr, weight_decay);
  options.finish();
  std::vector<std::string> buffers = freeze_at_rate_zero(*model, rules);
  compare_groups(c, c.json().at("groups"), protocols::trained_tensors(*model, rules));
  for (const auto& buffer : model->named_buffers()) buffers.push_back(buffer.key());
  std::sort(buffers.begin(), buffers.end());
  auto want = c.json().value("buffers", std::vector<std::string>{});
  std::sort(want.begin(), want.end());
  c.check("buffers", buffers == want, fmt::format("are [{}], expected [{}]", fmt::join(buffers, ", "), fmt::join(want, ", ")));
}

void training_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  const CaseRun run = read_run(c, options);
  options.finish();
  load_strictly(*model, c.take("weight."), c.name());
  const CaseTrajectory trajectory = train_case_model(c, *model, run, "", c.json().at("groups"));
  c.compare_output("loss", torch::tensor(trajectory.losses, torch::kFloat64));
  c.compare_output("lr_factor", torch::tensor(trajectory.factors, torch::kFloat64));
  compare_tensors(c, *model, "final.");
}

}  // namespace spt::reference
