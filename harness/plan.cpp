#include "harness/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>
#include <unordered_map>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/values.h"

namespace spt {
namespace {

constexpr double kLargestFlopsResidual = 0.02;

/// A stage before its steps are known.
struct StageDraft {
  StageSpec spec;
  size_t model = 0;
};
/// A cell before its steps are known.
struct CellDraft {
  uint32_t task = 0, architecture = 0, arm = 0;
  std::vector<StageDraft> stages;
};

/// The options of training that can change shapes, FLOPs, tokens or memory: a model is asked about once for all others.
TrainOptions shape_options(const TrainOptions& train) {
  TrainOptions shape;
  shape.batch = train.batch;
  shape.accumulate = train.accumulate;
  shape.order = train.order;
  shape.bucket_batches = train.bucket_batches;
  shape.optimizer = train.optimizer;
  shape.momentum = train.momentum;
  shape.dropout = train.dropout;
  shape.precision = train.precision;
  shape.pool = train.pool;
  shape.head_hidden = train.head_hidden;
  return shape;
}

/// The file as it is now: what is trained later is refused unless it starts from the same bytes.
GivenCheckpoint given_checkpoint(const MatrixComponent& architecture) {
  if (!architecture.checkpoint) return {};
  const auto& file = std::get<std::string>(architecture.checkpoint->value);
  if (!std::filesystem::is_regular_file(file)) throw Error("{}: there is no file of weights '{}'", architecture.checkpoint->origin, file);
  return {std::filesystem::absolute(file).string(), sha256_file(file)};
}

class Planner {
 public:
  Planner(Matrix matrix, WorkerClient& worker, const std::string& data_root) : worker_(worker), data_root_(data_root) {
    plan_.matrix = std::move(matrix);
    plan_.catalog = worker.catalog();
  }

  Plan run() {
    if (plan_.matrix.profile == "paper")
      throw Error("{}: profile \"paper\" needs the published recipes, which this version does not have; use profile = \"fair\"",
                  plan_.matrix.file);
    resolve_components();
    check_overrides();
    describe_tasks();
    for (uint32_t task = 0; task < plan_.matrix.tasks.size(); ++task)
      for (uint32_t architecture = 0; architecture < plan_.architectures.size(); ++architecture) draft_cells(task, architecture);
    check_training_options();
    describe_models();
    for (size_t first = 0; first < drafts_.size();) first = finish_group(first);
    return std::move(plan_);
  }

 private:
  bool trivial(uint32_t architecture) const { return entries_[architecture]->trivial; }

  void resolve_components() {
    const Matrix& matrix = plan_.matrix;
    plan_.architectures = matrix.architectures;
    add_baselines();
    for (const MatrixComponent& architecture : plan_.architectures) {
      entries_.push_back(&find_architecture_entry(plan_.catalog, architecture.name, architecture.origin));
      plan_.checkpoints.push_back(given_checkpoint(architecture));
      if (architecture.checkpoint)
        plan_.notes.push_back(fmt::format("{} starts from the weights {}: conditional on one pretraining run, whatever the seeds",
                                          architecture.label, plan_.checkpoints.back().file));
    }
    for (const MatrixComponent& protocol : matrix.protocols) plan_.protocols.push_back(protocol_use(plan_.catalog, protocol));
    plan_.arms = arms_of(matrix, plan_.protocols);
    for (const MatrixComponent& task : matrix.tasks) {
      task_specs_.push_back(task_spec(plan_.catalog, task));
      std::vector<std::string>& names = supervised_.emplace_back();
      for (const OptionSchema& option : find_task_entry(plan_.catalog, task.name, task.origin).options)
        if (option.info.stage == "supervised") names.push_back(option.name);
      std::sort(names.begin(), names.end());
    }
    specs_.resize(plan_.architectures.size());
    for (size_t i = 0; i < plan_.architectures.size(); ++i) specs_[i][0] = architecture_spec(plan_.catalog, plan_.architectures[i], false);
    const bool causal = std::any_of(plan_.arms.begin(), plan_.arms.end(), [](const Arm& arm) { return arm.causal; });
    for (size_t i = 0; causal && i < plan_.architectures.size(); ++i)
      if (!entries_[i]->trivial) specs_[i][1] = architecture_spec(plan_.catalog, plan_.architectures[i], true);
  }

  // Majority class, linear model: in every table, unless the matrix names them itself.
  void add_baselines() {
    for (const ArchitectureEntry& entry : plan_.catalog.architectures) {
      if (!entry.trivial) continue;
      const auto same = [&](const MatrixComponent& component) { return component.name == entry.name || component.label == entry.name; };
      if (std::none_of(plan_.matrix.architectures.begin(), plan_.matrix.architectures.end(), same))
        plan_.architectures.push_back({entry.name, entry.name, "", {}, "baseline " + entry.name});
    }
  }
  bool is_added(uint32_t architecture) const { return architecture >= plan_.matrix.architectures.size(); }

  // An override that selects nothing is a mistake.
  void check_overrides() const {
    std::vector<std::string> architectures, protocols;
    for (const MatrixComponent& architecture : plan_.architectures) architectures.push_back(architecture.label);
    for (const Arm& arm : plan_.arms) protocols.push_back(arm.protocol);
    std::sort(protocols.begin(), protocols.end());
    protocols.erase(std::unique(protocols.begin(), protocols.end()), protocols.end());
    const auto check = [](const Override& override, const char* what, const std::string& label, const std::vector<std::string>& known) {
      if (!label.empty() && std::find(known.begin(), known.end(), label) == known.end())
        throw Error("{}: {}", override.origin, unknown_name(what, label, known));
    };
    for (const Override& override : plan_.matrix.overrides) {
      check(override, "architecture label", override.architecture, architectures);
      check(override, "protocol label", override.protocol, protocols);
    }
  }

  // So is a setting that no stage reads, such as the factor of drops where no schedule drops.
  void check_training_options() const {
    std::vector<const Settings*> all = {&plan_.matrix.train};
    for (const auto& [stage, settings] : plan_.matrix.stages) all.push_back(&settings);
    for (const Override& override : plan_.matrix.overrides) all.push_back(&override.train);
    std::map<std::string, OptionNeed> needs;
    for (const OptionSchema& option : schema_of<TrainOptions>())
      if (option.info.needs && option.info.needs->option != option.name) needs.emplace(option.name, *option.info.needs);
    for (const Settings* settings : all) {
      for (const auto& [name, setting] : *settings) {
        const auto need = needs.find(name);
        if (need == needs.end()) continue;
        const auto reads = [&](const auto& entry) { return effective_options(entry.second).contains(name); };
        if (std::none_of(train_.begin(), train_.end(), reads))
          throw Error("{}: {} changes nothing: it needs {} = {}, which no stage has", setting.origin, name, need->second.option,
                      fmt::join(need->second.choices, " or "));
      }
    }
  }

  void describe_tasks() {
    DescribeQuery query{data_root_, {}, {}};
    for (const ComponentSpec& task : task_specs_) query.tasks.push_back({task.name, task.options});
    plan_.tasks = worker_.describe(query).tasks;
    SPT_CHECK(plan_.tasks.size() == task_specs_.size(), "{} answers about {} tasks", plan_.tasks.size(), task_specs_.size());
    for (size_t i = 0; i < plan_.tasks.size(); ++i) {
      const MatrixComponent& task = plan_.matrix.tasks[i];
      if (const std::string& error = plan_.tasks[i].error; !error.empty())
        throw Error("{}: {}", task.origin,
                    error.find(task.label) == std::string::npos ? fmt::format("task '{}': {}", task.label, error) : error);
      SPT_CHECK(!plan_.tasks[i].data_hash.empty(), "task {} has no data hash", task.label);
      if (plan_.tasks[i].partial) plan_.notes.push_back(fmt::format("task {}: partial data ({})", task.label, plan_.tasks[i].data_source));
    }
  }

  void draft_cells(uint32_t task, uint32_t architecture) {
    for (uint32_t arm = 0; arm < plan_.arms.size(); ++arm) {
      if (trivial(architecture) && !plan_.arms[arm].trivial) continue;
      CellDraft& draft = drafts_.emplace_back(CellDraft{task, architecture, arm, {}});
      const Arm& of = plan_.arms[arm];
      const std::vector<StageEntry>& stages = of.use->entry->stages;
      for (size_t i = of.kind == "spt" ? 0 : stages.size() - 1; i < stages.size(); ++i)
        draft.stages.push_back(draft_stage(draft, stages[i]));
    }
  }

  StageDraft draft_stage(const CellDraft& cell, const StageEntry& entry) {
    const Arm& arm = plan_.arms[cell.arm];
    StageDraft draft;
    StageSpec& spec = draft.spec;
    spec.name = entry.name;
    spec.objective = objective_spec(plan_.catalog, *arm.use, entry, plan_.tasks[cell.task].mask_ratio);
    if (entry.objective != "supervised") spec.inputs = arm.use->inputs;
    spec.train = train_options(cell, arm.protocol, entry.name);
    spec.evaluations = plan_.matrix.evaluations;
    draft.model = model_of(cell, arm.causal, spec);
    return draft;
  }

  // Arms of one protocol label share their values.
  const TrainOptions& train_options(const CellDraft& cell, const std::string& protocol, const std::string& stage) {
    const auto [at, fresh] = train_.try_emplace({cell.task, cell.architecture, protocol, stage});
    if (fresh) at->second = values().train(plan_.architectures[cell.architecture], plan_.matrix.tasks[cell.task], protocol, stage);
    return at->second;
  }
  const TrainValues& values() {
    if (!values_) values_.emplace(plan_.matrix, plan_.catalog);
    return *values_;
  }

  size_t model_of(const CellDraft& cell, bool causal, const StageSpec& stage) {
    std::string objective = stage.objective.name;
    for (const auto& [name, value] : stage.objective.options) objective += fmt::format(" {}={}", name, to_text(value));
    const TrainOptions& train = stage.train;
    const ModelKey key(cell.task, cell.architecture, causal, std::move(objective), train.batch, train.accumulate, train.order,
                       train.bucket_batches, train.optimizer, train.momentum, train.dropout, train.precision, train.pool,
                       train.head_hidden);
    const auto [at, fresh] = model_index_.try_emplace(key, queries_.size());
    if (fresh)
      queries_.push_back(
          {specs_[cell.architecture][causal], task_specs_[cell.task], stage.objective, shape_options(train), plan_.matrix.profile});
    return at->second;
  }

  void describe_models() {
    const DescribeQuery query{data_root_, {}, std::move(queries_)};
    plan_.models = worker_.describe(query).models;
    SPT_CHECK(plan_.models.size() == query.models.size(), "{} answers about {} models", plan_.models.size(), query.models.size());
  }

  // The drafts of one task and architecture, whose arms refer to each other.
  size_t finish_group(size_t first) {
    size_t last = first;
    while (last < drafts_.size() && drafts_[last].task == drafts_[first].task && drafts_[last].architecture == drafts_[first].architecture)
      ++last;
    if (can_be_modelled(first, last)) {
      for (size_t i = first; i < last; ++i) finish(drafts_[i], drafts_[first + plan_.arms[drafts_[i].arm].spt]);
    }
    return last;
  }

  bool can_be_modelled(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      for (const StageDraft& stage : drafts_[i].stages) {
        const std::string& error = plan_.models[stage.model].error;
        if (error.empty()) continue;
        const MatrixComponent& architecture = plan_.architectures[drafts_[i].architecture];
        const MatrixComponent& task = plan_.matrix.tasks[drafts_[i].task];
        if (!is_added(drafts_[i].architecture))
          throw Error("{}: architecture '{}' on task '{}', stage {}: {}", architecture.origin, architecture.label, task.label,
                      stage.spec.name, error);
        plan_.notes.push_back(fmt::format("baseline {} is left out on task {}: {}", architecture.label, task.label, error));
        return false;
      }
    }
    return true;
  }

  StageUnits units(const CellDraft& cell, const StageDraft& stage) const {
    const double size = stage.spec.inputs == "train" ? 0 : static_cast<double>(plan_.tasks[cell.task].train_size);
    return {static_cast<double>(stage.spec.train.batch), plan_.models[stage.model].tokens_per_step, size};
  }

  struct Steps {
    int64_t pretrain = 0, finetune = 0;
  };
  /// P and F of an spt arm; F (or T) of any other.
  Steps stated_steps(const CellDraft& cell) {
    const Budgets& budgets = task_budgets(cell.task);
    const StageDraft& last = cell.stages.back();
    Steps steps;
    if (!budgets.total) {
      steps.finetune = budget_steps(*budgets.finetune, units(cell, last));
      if (cell.stages.size() > 1)
        steps.pretrain = budgets.pretrain ? budget_steps(*budgets.pretrain, units(cell, cell.stages.front()))
                                          : pretraining_steps(steps.finetune, budgets.share ? std::get<double>(budgets.share->value) : 0.5);
    } else {
      const int64_t total = budget_steps(*budgets.total, units(cell, last));
      if (cell.stages.size() > 1)
        steps.pretrain = std::llround(static_cast<double>(total) * (budgets.share ? std::get<double>(budgets.share->value) : 0.5));
      steps.finetune = total - steps.pretrain;
    }
    check_room(cell, steps);
    return steps;
  }

  void check_room(const CellDraft& cell, const Steps& steps) {
    const Budgets& budgets = task_budgets(cell.task);
    const int64_t least = cell.stages.size() > 1 ? std::min(steps.pretrain, steps.finetune) : steps.finetune;
    if (least < plan_.matrix.evaluations)
      throw Error("{}: a stage of {} steps (task {}) has no room for {} evaluations; raise the budget or lower budget.evaluations",
                  (budgets.total ? budgets.total : budgets.finetune)->origin, least, plan_.matrix.tasks[cell.task].label,
                  plan_.matrix.evaluations);
  }

  const Budgets& task_budgets(uint32_t task) {
    const auto [at, fresh] = budgets_.try_emplace(task);
    if (fresh) at->second = budgets_of(plan_.matrix, plan_.matrix.tasks[task].label);
    return at->second;
  }

  double cost(Basis basis, const StageDraft& stage) const {
    const ModelAnswer& model = plan_.models[stage.model];
    return step_cost(basis, static_cast<double>(stage.spec.train.batch), model.tokens_per_step, model.flops_per_step);
  }

  void finish(CellDraft& draft, const CellDraft& spt) {
    const Arm& arm = plan_.arms[draft.arm];
    PlanCell cell{.spec = {},
                  .task = draft.task,
                  .architecture = draft.architecture,
                  .arm = draft.arm,
                  .trivial = trivial(draft.architecture),
                  .stages = {},
                  .costs = {},
                  .residual = {}};
    Steps steps;
    if (arm.kind == "matched" && !cell.trivial) {
      const Steps answered = stated_steps(spt);
      const double pretrain = cost(arm.basis, spt.stages.front()), finetune = cost(arm.basis, draft.stages.back());
      if (!(finetune > 0))
        throw Error("{}: {} has no cost in {}, so nothing can be matched to it", plan_.matrix.file, arm.name, basis_name(arm.basis));
      steps.finetune = matched_steps(answered.finetune, answered.pretrain, pretrain, finetune);
      cell.match_cost = static_cast<double>(steps.finetune) * finetune;
      const double spent =
          static_cast<double>(answered.pretrain) * pretrain + static_cast<double>(answered.finetune) * cost(arm.basis, spt.stages.back());
      cell.residual = std::abs(spent / cell.match_cost - 1);
    } else {
      steps = stated_steps(draft);
    }
    draft.stages.back().spec.steps = steps.finetune;
    if (draft.stages.size() > 1) draft.stages.front().spec.steps = steps.pretrain;
    fill_spec(cell, draft);
    check_residual(cell);
    add_cell(std::move(cell));
  }

  void fill_spec(PlanCell& cell, const CellDraft& draft) {
    const Arm& arm = plan_.arms[draft.arm];
    JobSpec& spec = cell.spec;
    spec.architecture = specs_[draft.architecture][arm.causal && !cell.trivial];
    spec.task = task_specs_[draft.task];
    spec.supervised_options = supervised_[draft.task];
    spec.data_hash = plan_.tasks[draft.task].data_hash;
    spec.init = arm.init;
    spec.checkpoint = plan_.checkpoints[draft.architecture];
    spec.profile = plan_.matrix.profile;
    spec.streams = plan_.matrix.streams;
    for (const StageDraft& stage : draft.stages) {
      spec.stages.push_back(stage.spec);
      const ModelAnswer& model = plan_.models[stage.model];
      const auto n = static_cast<double>(stage.spec.steps);
      cell.costs.push_back({stage.model, n * model.flops_per_step, n * model.tokens_per_step, stage.spec.steps * stage.spec.train.batch});
    }
  }

  void check_residual(const PlanCell& cell) const {
    if (plan_.arms[cell.arm].basis == Basis::kFlops && cell.residual && *cell.residual > kLargestFlopsResidual)
      throw Error("{}: {} costs {:.1f} % other FLOPs than {}: the budgets are too small to match", plan_.matrix.file, plan_.cell_name(cell),
                  100 * *cell.residual, plan_.arms[plan_.arms[cell.arm].spt].name);
  }

  // A stage is spelled once for all seeds, and equal texts are one stage.
  void add_cell(PlanCell cell) {
    const auto number = static_cast<uint32_t>(plan_.cells.size());
    for (uint32_t index = 0; index < cell.spec.stages.size(); ++index) {
      const auto [at, fresh] = texts_.try_emplace(cell_text(cell.spec, index), plan_.stages.size());
      if (fresh) {
        for (uint32_t seed = 0; seed < plan_.matrix.seeds.size(); ++seed) {
          const int64_t parent = index > 0 ? static_cast<int64_t>(cell.stages.back() + seed) : -1;
          plan_.stages.push_back({stage_key(at->first, plan_.matrix.seeds[seed], plan_.matrix.streams), number, index, seed, parent});
        }
      }
      cell.stages.push_back(at->second);
    }
    plan_.cells.push_back(std::move(cell));
  }

  WorkerClient& worker_;
  std::string data_root_;
  Plan plan_;
  std::optional<TrainValues> values_;
  std::vector<const ArchitectureEntry*> entries_;
  std::vector<std::array<ComponentSpec, 2>> specs_;  ///< of each architecture: as given, and causal
  std::vector<ComponentSpec> task_specs_;
  std::vector<std::vector<std::string>> supervised_;
  std::vector<CellDraft> drafts_;
  std::vector<ModelQuery> queries_;
  using ModelKey = std::tuple<uint32_t, uint32_t, bool, std::string, int64_t, int64_t, std::string, int64_t, std::string, double, double,
                              std::string, std::string, std::string>;
  std::map<ModelKey, size_t> model_index_;
  std::map<std::tuple<uint32_t, uint32_t, std::string, std::string>, TrainOptions> train_;
  std::map<uint32_t, Budgets> budgets_;
  std::unordered_map<std::string, size_t> texts_;
};

}  // namespace

Plan plan_matrix(Matrix matrix, WorkerClient& worker, const std::string& data_root) {
  return Planner(std::move(matrix), worker, data_root).run();
}

}  // namespace spt
