#include "harness/worker/stage.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "harness/base/error.h"
#include "harness/worker/evaluate.h"
#include "protocols/init.h"
#include "protocols/losses.h"

namespace spt::worker {
namespace {

constexpr uint64_t kPublishedSubsetSeed = 42;

tasks::OpenedTask open_task(const tasks::Task& task, const JobSpec& job, const std::filesystem::path& data_root) {
  if (task.version != job.task.version)
    throw Error("task {} has version {} here, the job was planned with {}; plan it again", job.task.name, task.version, job.task.version);
  const OptionMap options = complete(task.options, job.task.options, fmt::format("task {}", job.task.name));
  if (task.validate) task.validate(options);
  tasks::OpenedTask opened = task.open(options, data_root, subset_stream(job));
  if (opened.facts.data_hash != job.data_hash)
    throw DataError("the data of task {} ({}) have hash {}, the job was planned for {}; run `spt-bench data verify {}`", job.task.name,
                    opened.facts.data_source, opened.facts.data_hash, job.data_hash, job.task.name);
  SPT_CHECK(opened.train && opened.validation && opened.test, "task {} opened without all of its splits", job.task.name);
  return opened;
}

const models::Architecture& checked_architecture(const Registry& registry, const JobSpec& job) {
  const models::Architecture& architecture = registry.architecture(job.architecture.name);
  if (architecture.version != job.architecture.version)
    throw Error("architecture {} has version {} here, the job was planned with {}; plan it again", job.architecture.name,
                architecture.version, job.architecture.version);
  return architecture;
}

Baseline class_baseline(const tasks::OpenedTask& task) {
  std::map<int64_t, int64_t> train, test;
  for (int64_t i = 0; i < task.train->size(); ++i) ++train[task.train->label(i)];
  for (int64_t i = 0; i < task.test->size(); ++i) ++test[task.test->label(i)];
  const auto largest = [](const std::map<int64_t, int64_t>& counts) {
    return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  };
  if (train.empty() || test.empty()) return {};
  const double n = static_cast<double>(task.test->size());
  return {static_cast<double>(largest(test)->second) / n, static_cast<double>(test[largest(train)->first]) / n};
}

at::Tensor all_targets(const tasks::Dataset& data) {
  std::vector<at::Tensor> parts;
  const std::vector<int64_t> indices = all_indices(data.size());
  for (size_t first = 0; first < indices.size(); first += kEvaluationBatch)
    parts.push_back(data.batch(std::span(indices).subspan(first, std::min<size_t>(kEvaluationBatch, indices.size() - first))).targets);
  return torch::cat(parts);
}

Baseline regression_baseline(const tasks::OpenedTask& task) {
  const at::Tensor test = all_targets(*task.test);
  protocols::RegressionSums sums;
  sums.add(all_targets(*task.train).mean(0, true).expand_as(test), test);
  const std::string& metric = task.facts.metrics.front().name;
  if (metric == "r2") return {0, sums.r2()};
  if (metric == "mae") return {0, sums.mae()};
  if (metric == "mse") return {0, sums.mse()};
  return {};
}

}  // namespace

models::ModelSpec model_spec(const models::Architecture& architecture, const OptionMap& options, const protocols::Objective& objective,
                             const tasks::TaskFacts& facts, const TrainOptions& train, const std::string& profile) {
  models::ModelSpec spec{.options = complete(architecture.options, options, fmt::format("architecture {}", architecture.name)),
                         .input = objective.input(facts),
                         .head = objective.head(facts),
                         .dropout = train.dropout,
                         .mask_padding = profile != "paper"};
  if (architecture.validate) architecture.validate(spec.options);
  return spec;
}

void check_causal(const models::Architecture& architecture, const OptionMap& options, const std::string& objective) {
  if (!protocols::find_objective(objective).needs_causal) return;
  if (architecture.causal.empty())
    throw Error("objective {} needs a causal model, and architecture {} cannot be one", objective, architecture.name);
  for (const auto& [name, value] : architecture.causal) {
    const auto found = options.find(name);
    if (found == options.end() || found->second != value)
      throw Error("objective {} needs a causal model: architecture {} must have {} = {}", objective, architecture.name, name,
                  to_text(value));
  }
}

protocols::OptimizerRules optimizer_rules(const TrainOptions& train, const std::string& profile) {
  // Published state space configurations give A and B a rate of their own, and dt the global one (arXiv:2310.02980 and its code).
  return {.name = profile,
          .lr = train.lr,
          .weight_decay = train.weight_decay,
          .state_lr = train.state_lr,
          .lr_dt = {},
          .lr_a = train.state_lr,
          .lr_b = train.state_lr,
          .lr_real = train.state_lr,
          .lr_imag = train.state_lr,
          .lr_w = train.state_lr};
}

std::unique_ptr<protocols::Optimizer> make_optimizer(const models::Model& model, const TrainOptions& train, const std::string& profile) {
  return protocols::make_optimizer(train.optimizer, protocols::trained_tensors(model, optimizer_rules(train, profile)),
                                   {.adam = {train.beta1, train.beta2, train.eps}, .sgd = {train.momentum}});
}

at::ScalarType scalar_type(const std::string& precision) {
  if (precision == "float32") return at::kFloat;
  if (precision == "float64") return at::kDouble;
  throw Error("{}", unknown_name("precision", precision, std::vector<std::string>{"float32", "float64"}));
}

Stream subset_stream(const JobSpec& job) {
  if (job.profile == "paper" && !job.streams.contains("subset")) return Stream(kPublishedSubsetSeed, "subset");
  return Rng(job.seed, job.streams).stream("subset");
}

Stage::Stage(const Registry& registry, const JobSpec& job, size_t index, const std::filesystem::path& data_root)
    : job_(job),
      spec_(job.stages.at(index)),
      supervised_(spec_.objective.name == "supervised"),
      rng_(job.seed, job.streams),
      architecture_(checked_architecture(registry, job)),
      task_(open_task(registry.task(job.task.name), job, data_root)),
      objective_(protocols::make_objective(spec_.objective.name, spec_.objective.options, task_.facts,
                                           {spec_.train.pool, spec_.train.head_hidden})) {
  protocols::is_redrawn(job.init, models::ParameterRole::kMatrix);  // the name is known
  if (spec_.evaluations < 1) throw Error("a stage needs at least 1 evaluation, stage {} has {}", spec_.name, spec_.evaluations);
  if (spec_.inputs != "subset" && spec_.inputs != "train")
    throw Error("{}", unknown_name("inputs", spec_.inputs, std::vector<std::string>{"subset", "train"}));
  check_causal(architecture_, job.architecture.options, spec_.objective.name);
  model_spec_ = model_spec(architecture_, job.architecture.options, *objective_, task_.facts, spec_.train, job.profile);
  cost_ = std::make_unique<StageCost>(architecture_, model_spec_);
  const int64_t n = train_data()->size();
  const Stream subset = rng_.stream("subset");
  train_sample_ = subset.permutation(n, subset.seed("train sample"));
  train_sample_.resize(std::min(n, task_.validation->size()));
  std::sort(train_sample_.begin(), train_sample_.end());
}

std::shared_ptr<const tasks::Dataset> Stage::train_data() const {
  if (supervised_ || spec_.inputs == "subset") return task_.train;
  if (!task_.unlabelled_train) throw Error("task {} has no unlabelled train inputs: use pretrain_inputs = \"subset\"", job_.task.name);
  return task_.unlabelled_train;
}

std::shared_ptr<models::Model> Stage::fresh_model(const at::Device& device) const {
  const Stream init = rng_.stream("init");
  torch::manual_seed(init.seed("build"));  // whatever a constructor of LibTorch draws, before the real draw by name
  const auto model = models::build_model(architecture_, model_spec_);
  model->to(scalar_type(spec_.train.precision));
  model->reset_parameters(init);
  protocols::apply_init(*model, job_.init, init);
  model->to(device);
  return model;
}

std::unique_ptr<protocols::Optimizer> Stage::optimizer(const models::Model& model) const {
  return make_optimizer(model, spec_.train, job_.profile);
}

Baseline trivial_baseline(const tasks::OpenedTask& task) {
  if (task.facts.kind == "classification") return class_baseline(task);
  if (task.facts.kind == "regression") return regression_baseline(task);
  return {};
}

int64_t parameter_count(const models::Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

int64_t body_parameter_count(const models::Model& model) {
  int64_t count = 0;
  for (const auto& item : model.named_parameters())
    if (item.key().starts_with("body.")) count += item.value().numel();
  return count;
}

}  // namespace spt::worker
