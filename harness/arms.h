#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/catalog.h"
#include "harness/matrix.h"
#include "harness/values.h"

namespace spt {

/// One arm of a matrix, before tasks and architectures are known.
struct Arm {
  std::string name;        ///< scratch@F, spt-masked@P+F, scratch@(P+F):flops
  std::string kind;        ///< scratch | spt | matched
  std::string protocol;    ///< label that overrides select by
  std::string pairs_with;  ///< the spt arm that a matched arm answers, and that a scratch arm of its own belongs to; ""
  std::string init = "default";
  bool causal = false;
  bool trivial = false;              ///< baselines stand in it
  Basis basis = Basis::kSteps;       ///< matched
  const ProtocolUse* use = nullptr;  ///< whose stages it has: all of them (spt), or the supervised one
  size_t spt = 0;                    ///< matched: index of the arm it answers
};

/// The arms of a matrix in table order. A causal protocol, and one with an init of its own, has scratch arms of its own
/// (`scratch-causal@F`). Two protocols that share scratch@(P+F) give two arms of that name which differ in `pairs_with`; on a basis where
/// their costs can differ the name ends in the protocol's label. `uses` must outlive the arms.
std::vector<Arm> arms_of(const Matrix& matrix, const std::vector<ProtocolUse>& uses);

/// What a budget is counted in, for one stage of one cell.
struct StageUnits {
  double batch = 0;            ///< examples a step
  double tokens_per_step = 0;  ///< real positions a step
  double train_size = 0;       ///< examples of one epoch; 0: not known
};

/// Steps of a budget: as stated, or the smallest number that reaches it. Errors: Error for epochs of data whose size is not known.
int64_t budget_steps(const Budget& budget, const StageUnits& units);

/// P of a share s: round(F s / (1 - s)).
int64_t pretraining_steps(int64_t finetune, double share);

/// Cost of one step on a basis: 1, examples, tokens or FLOPs.
double step_cost(Basis basis, double batch, double tokens_per_step, double flops_per_step);

/// S' = F + round(P c_P / c_F).
int64_t matched_steps(int64_t finetune, int64_t pretrain, double pretrain_cost, double finetune_cost);

/// The budgets of one task: those of the matrix, changed by the overrides that select it. Errors: Error where two overrides disagree.
Budgets budgets_of(const Matrix& matrix, const std::string& task);

}  // namespace spt
