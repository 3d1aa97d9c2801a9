#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/plan.h"

namespace spt {
namespace {

std::string budget_text(const Budgets& budgets, bool pretraining) {
  if (pretraining && budgets.pretrain) return budgets.pretrain->origin;
  if (pretraining) return budgets.share ? budgets.share->origin : "default: a share of 0.5";
  return budgets.total ? budgets.total->origin : budgets.finetune->origin;
}

std::string steps_origin(const Plan& plan, const PlanCell& cell, const StageSpec& stage) {
  const Arm& arm = plan.arms[cell.arm];
  const Budgets budgets = budgets_of(plan.matrix, plan.matrix.tasks[cell.task].label);
  if (arm.kind == "matched" && !cell.trivial) return fmt::format("matched to {} by {}", plan.arms[arm.spt].name, basis_name(arm.basis));
  return budget_text(budgets, stage.objective.name != "supervised");
}

}  // namespace

std::string Plan::cell_name(const PlanCell& cell) const {
  return fmt::format("{}/{}/{}", matrix.tasks[cell.task].label, architectures[cell.architecture].label, arms[cell.arm].name);
}

std::string Plan::job_name(const PlanCell& cell, size_t seed) const {
  return fmt::format("{}/seed={}", cell_name(cell), matrix.seeds[seed]);
}

JobSpec Plan::job_spec(const PlanCell& cell, size_t seed) const {
  JobSpec spec = cell.spec;
  spec.seed = matrix.seeds[seed];
  return spec;
}

results::MatrixRow matrix_row(const Plan& plan) {
  const Matrix& matrix = plan.matrix;
  results::MatrixRow row;
  row.id = row.name = matrix.name;
  row.profile = matrix.profile;
  row.reference = matrix.reference;
  row.mode = matrix.total_mode() ? "total" : "finetune";
  row.toml = matrix.text;
  row.seeds = matrix.seeds;
  row.analysis_hash = analysis_hash(matrix);
  row.margin = matrix.margin;
  return row;
}

results::PlannedJob planned_job(const Plan& plan, const PlanCell& cell, size_t seed) {
  const Arm& arm = plan.arms[cell.arm];
  results::PlannedJob job;
  job.key = plan.job_key(cell, seed);
  job.name = plan.job_name(cell, seed);
  job.task = plan.matrix.tasks[cell.task].label;
  job.architecture = plan.architectures[cell.architecture].label;
  job.protocol = arm.protocol;
  job.arm = arm.name;
  job.arm_kind = arm.kind;
  if (!cell.trivial) job.pairs_with = arm.pairs_with;
  job.seed = plan.matrix.seeds[seed];
  job.trivial = cell.trivial;
  for (const size_t stage : cell.stages) job.stages.push_back(plan.stages[stage + seed].key);
  for (const StageCost& cost : cell.costs) job.flops += cost.flops;
  job.match_cost = cell.match_cost;
  const TaskAnswer& task = plan.tasks[cell.task];
  job.metric = task.metric;
  job.unit = task.unit;
  job.higher_is_better = task.higher_is_better;
  return job;
}

std::vector<results::PlannedJob> planned_jobs(const Plan& plan) {
  std::vector<results::PlannedJob> jobs;
  jobs.reserve(plan.job_count());
  for (const PlanCell& cell : plan.cells)
    for (size_t seed = 0; seed < plan.matrix.seeds.size(); ++seed) jobs.push_back(planned_job(plan, cell, seed));
  return jobs;
}

results::PlannedStage planned_stage(const Plan& plan, size_t stage) {
  const PlanStage& planned = plan.stages.at(stage);
  const PlanCell& cell = plan.cells[planned.cell];
  results::PlannedStage row;
  row.key = planned.key;
  row.name = cell.spec.stages[planned.index].name;
  if (planned.parent >= 0) row.parent = plan.stages[static_cast<size_t>(planned.parent)].key;
  row.spec = canonical(to_json(plan.job_spec(cell, planned.seed)));
  row.index = planned.index;
  return row;
}

Origins origins_of(const Plan& plan, const PlanCell& cell) {
  const Arm& arm = plan.arms[cell.arm];
  const MatrixComponent& architecture = plan.architectures[cell.architecture];
  const MatrixComponent& task = plan.matrix.tasks[cell.task];
  const TrainValues values(plan.matrix, plan.catalog);
  Origins origins;
  architecture_spec(plan.catalog, architecture, arm.causal && !cell.trivial, &origins);
  task_spec(plan.catalog, task, &origins);
  origins.push_back({"data_hash", cell.spec.data_hash, plan.tasks[cell.task].data_source});
  origins.push_back({"init", cell.spec.init, arm.use->init_origin});
  if (architecture.checkpoint)
    origins.push_back({"checkpoint", cell.spec.checkpoint.sha256,
                       fmt::format("{}: SHA-256 of {}", architecture.checkpoint->origin, to_text(architecture.checkpoint->value))});
  for (const StageSpec& stage : cell.spec.stages) {
    for (const StageEntry& entry : arm.use->entry->stages)
      if (entry.name == stage.name) objective_spec(plan.catalog, *arm.use, entry, plan.tasks[cell.task].mask_ratio, &origins);
    origins.push_back({fmt::format("stage.{}.inputs", stage.name), stage.inputs, "the protocol"});
    origins.push_back({fmt::format("stage.{}.steps", stage.name), stage.steps, steps_origin(plan, cell, stage)});
    origins.push_back({fmt::format("stage.{}.evaluations", stage.name), stage.evaluations, "[budget] or default"});
    values.train(architecture, task, arm.protocol, stage.name, &origins);
  }
  return origins;
}

}  // namespace spt
