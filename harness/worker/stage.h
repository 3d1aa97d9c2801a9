#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "harness/job.h"
#include "harness/worker/cost.h"
#include "models/architecture.h"
#include "protocols/objective.h"
#include "protocols/optimizer.h"
#include "tasks/task.h"

namespace spt::worker {

/// Where names are looked up: the registries, or what a test has made.
struct Registry {
  std::function<const models::Architecture&(const std::string&)> architecture = models::find_architecture;
  std::function<const tasks::Task&(const std::string&)> task = tasks::find_task;
};

/// The network of a stage. Errors: Error for an objective that the architecture cannot serve.
models::ModelSpec model_spec(const models::Architecture& architecture, const OptionMap& options, const protocols::Objective& objective,
                             const tasks::TaskFacts& facts, const TrainOptions& train, const std::string& profile);

/// Errors: Error if the objective needs a causal model and these options do not make one.
void check_causal(const models::Architecture& architecture, const OptionMap& options, const std::string& objective);

protocols::OptimizerRules optimizer_rules(const TrainOptions& train, const std::string& profile);
std::unique_ptr<protocols::Optimizer> make_optimizer(const models::Model& model, const TrainOptions& train, const std::string& profile);

/// The type of parameters and activations. Errors: Error for an unknown precision.
at::ScalarType scalar_type(const std::string& precision);

/// The stream that subsets are drawn from: the job's; fixed in `paper` unless it was re-seeded.
Stream subset_stream(const JobSpec& job);

/// One stage of a job with its data open, ready to be trained. Immutable.
class Stage {
 public:
  /// Errors: DataError if the data are absent or not the job's; Error for names, options and versions that this program does not have.
  Stage(const Registry& registry, const JobSpec& job, size_t index, const std::filesystem::path& data_root);

  /// A new network, every parameter drawn from stream "init" by its name as the job's init says, in the stage's precision, on `device`.
  std::shared_ptr<models::Model> fresh_model(const at::Device& device) const;
  std::unique_ptr<protocols::Optimizer> optimizer(const models::Model& model) const;

  const models::Architecture& architecture() const { return architecture_; }
  const std::string& init() const { return job_.init; }
  const StageSpec& spec() const { return spec_; }
  const Rng& rng() const { return rng_; }
  const tasks::OpenedTask& task() const { return task_; }
  const protocols::Objective& objective() const { return *objective_; }
  const StageCost& cost() const { return *cost_; }
  bool supervised() const { return supervised_; }
  std::shared_ptr<const tasks::Dataset> train_data() const;
  /// A fixed part of train as large as validation, ascending. Random: stream "subset".
  const std::vector<int64_t>& train_sample() const { return train_sample_; }

 private:
  const JobSpec job_;
  const StageSpec spec_;
  const bool supervised_;
  const Rng rng_;
  const models::Architecture& architecture_;
  tasks::OpenedTask task_;
  std::unique_ptr<protocols::Objective> objective_;
  models::ModelSpec model_spec_;
  std::unique_ptr<StageCost> cost_;
  std::vector<int64_t> train_sample_;
};

/// Chance and the trivial predictor of a task: majority rate of test; test score of always answering train's majority class (ties: the
/// smaller), or train's mean. 0 where the notion does not apply.
struct Baseline {
  double chance = 0;
  double majority = 0;
};
Baseline trivial_baseline(const tasks::OpenedTask& task);

int64_t parameter_count(const models::Model& model);
int64_t body_parameter_count(const models::Model& model);

}  // namespace spt::worker
