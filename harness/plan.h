#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/arms.h"
#include "harness/catalog.h"
#include "harness/job.h"
#include "harness/matrix.h"
#include "harness/worker_client.h"
#include "results/record.h"
#include "results/store.h"

namespace spt {

/// One stage of one seed, whatever number of jobs need it.
struct PlanStage {
  std::string key;
  uint32_t cell = 0;    ///< a cell that needs it; its spec is spelled from there
  uint32_t index = 0;   ///< position in the chain
  uint32_t seed = 0;    ///< index into Plan::seeds
  int64_t parent = -1;  ///< index of the stage it starts from; -1: none
};

/// What one stage of a cell costs; the same for every seed.
struct StageCost {
  size_t model = 0;  ///< index into Plan::models: equal for stages whose steps take equal time
  double flops = 0, tokens = 0;
  int64_t examples = 0;
};

/// task x architecture x arm: jobs that differ in the seed alone.
struct PlanCell {
  JobSpec spec;                                  ///< seed 0
  uint32_t task = 0, architecture = 0, arm = 0;  ///< indices into Plan
  bool trivial = false;
  std::vector<size_t> stages;      ///< index into Plan::stages of the first seed's; seed i is i further
  std::vector<StageCost> costs;    ///< one a stage
  double match_cost = 0;           ///< matched arms: planned cost on the arm's basis
  std::optional<double> residual;  ///< matched arms: |C(spt)/C(scratch) - 1| on the basis
};

/// What a matrix would train. Pure data; planning reads the catalog, what the worker says about specs, and the matrix, and nothing else.
struct Plan {
  Matrix matrix;
  Catalog catalog;
  std::vector<MatrixComponent> architectures;  ///< those of the matrix, then the baselines that every table has
  std::vector<GivenCheckpoint> checkpoints;    ///< of each architecture; without a hash where it has none
  std::vector<ProtocolUse> protocols;
  std::vector<Arm> arms;
  std::vector<TaskAnswer> tasks;  ///< of matrix.tasks
  std::vector<ModelAnswer> models;
  std::vector<PlanCell> cells;
  std::vector<PlanStage> stages;   ///< parents before children
  std::vector<std::string> notes;  ///< for people: baselines left out, official facts used

  size_t job_count() const { return cells.size() * matrix.seeds.size(); }
  const std::string& arm_name(const PlanCell& cell) const { return arms[cell.arm].name; }
  std::string cell_name(const PlanCell& cell) const;              ///< fashion/transformer/scratch@F
  std::string job_name(const PlanCell& cell, size_t seed) const;  ///< fashion/transformer/scratch@F/seed=3
  const std::string& job_key(const PlanCell& cell, size_t seed) const { return stages[cell.stages.back() + seed].key; }
  JobSpec job_spec(const PlanCell& cell, size_t seed) const;
};

/// Errors: Error at a place of the matrix file for what the catalog does not know, for arms that cannot be (an architecture that cannot be
/// causal), for budgets too small, for conflicting overrides, and for tasks that the worker cannot describe.
Plan plan_matrix(Matrix matrix, WorkerClient& worker, const std::string& data_root);

/// Rows for the database. `planned_stages` spells the specs, so it is asked only for the stages that the database does not know.
results::MatrixRow matrix_row(const Plan& plan);
results::PlannedJob planned_job(const Plan& plan, const PlanCell& cell, size_t seed);
std::vector<results::PlannedJob> planned_jobs(const Plan& plan);
results::PlannedStage planned_stage(const Plan& plan, size_t stage);

/// Every value of a cell with where it comes from, for `plan --show`.
Origins origins_of(const Plan& plan, const PlanCell& cell);

}  // namespace spt
