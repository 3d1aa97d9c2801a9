#include "harness/arms.h"

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"

namespace spt {
namespace {

/// Steps are counted in 64 bits and multiplied by batches and seeds; no machine trains so long.
constexpr double kMostSteps = 1e12;

std::string matched_name(const Matrix& matrix, const std::string& label, Basis basis, const std::string& shared_with) {
  if (basis == Basis::kSteps) return label + (matrix.total_mode() ? "@T" : "@(P+F)");
  return fmt::format("{}@(P+F):{}{}", label, basis_name(basis), shared_with);
}

class ArmList {
 public:
  ArmList(const Matrix& matrix, const std::vector<ProtocolUse>& uses) : matrix_(matrix), uses_(uses) {
    for (const ProtocolUse& use : uses)
      if (!use.pretrains() && !scratch_) scratch_ = &use;
  }

  std::vector<Arm> make() {
    for (const ProtocolUse& use : uses_)
      if (!use.pretrains()) add_scratch(use);
    for (const ProtocolUse& use : uses_)
      if (use.pretrains()) add_pretraining(use);
    check_names();
    add_place_for_baselines();
    return std::move(arms_);
  }

 private:
  // Scratch arms that are comparable with one pretraining protocol: same model, same init.
  std::string scratch_label(const ProtocolUse& use) const {
    const auto same =
        std::find_if(uses_.begin(), uses_.end(), [&](const ProtocolUse& other) { return !other.pretrains() && other.init == use.init; });
    std::string label = same != uses_.end() ? same->label : scratch_ ? scratch_->label : "scratch";
    if (use.entry->causal) label += "-causal";
    if (same == uses_.end() && use.init != (scratch_ ? scratch_->init : "default")) label += "-" + use.init;
    return label;
  }

  // In total mode scratch@T is the matched arm of each pretraining protocol; it stands alone where none has its label.
  void add_scratch(const ProtocolUse& use) {
    const auto answers = [&](const ProtocolUse& other) { return other.pretrains() && scratch_label(other) == use.label; };
    if (matrix_.total_mode() && std::any_of(uses_.begin(), uses_.end(), answers)) return;
    Arm arm{.name = use.label + (matrix_.total_mode() ? "@T" : "@F"),
            .kind = "scratch",
            .protocol = use.label,
            .pairs_with = "",
            .init = use.init,
            .causal = use.entry->causal};
    arm.use = &use;
    arms_.push_back(arm);
  }

  void add_pretraining(const ProtocolUse& use) {
    const size_t spt = arms_.size();
    const std::string name = use.label + "@P+F";
    arms_.push_back({.name = name, .kind = "spt", .protocol = use.label, .pairs_with = "", .init = use.init, .causal = use.entry->causal});
    arms_.back().use = &use;
    const std::string label = scratch_label(use);
    Arm own{.name = label + "@F", .kind = "scratch", .protocol = label, .pairs_with = name, .init = use.init, .causal = use.entry->causal};
    own.use = &use;
    if (scratch_ && label != scratch_->label && !matrix_.total_mode()) arms_.push_back(own);
    const auto sharing = std::count_if(uses_.begin(), uses_.end(),
                                       [&](const ProtocolUse& other) { return other.pretrains() && scratch_label(other) == label; });
    own.kind = "matched";
    own.spt = spt;
    for (const Basis basis : matrix_.match) {
      own.basis = basis;
      own.name = matched_name(matrix_, label, basis, sharing > 1 ? ":" + use.label : "");
      arms_.push_back(own);
    }
  }

  // Equal names must mean equal jobs: labels of the matrix may not meet the names that are made here.
  void check_names() const {
    for (const Arm& a : arms_)
      for (const Arm& b : arms_)
        if (a.name == b.name && (a.kind != b.kind || a.pairs_with == b.pairs_with) && &a != &b)
          throw Error("{}: two arms are called '{}'; give a protocol another label", matrix_.file, a.name);
  }

  // Baselines stand once a task, in the plain scratch arm.
  void add_place_for_baselines() {
    const auto plain = [](const Arm& arm) {
      return arm.kind != "spt" && !arm.causal && arm.init == "default" && arm.basis == Basis::kSteps;
    };
    const auto scratch = std::find_if(arms_.begin(), arms_.end(), [&](const Arm& arm) { return arm.kind == "scratch" && plain(arm); });
    const auto any =
        scratch != arms_.end() ? scratch : std::find_if(arms_.begin(), arms_.end(), [](const Arm& arm) { return arm.kind != "spt"; });
    if (any != arms_.end()) any->trivial = true;
  }

  const Matrix& matrix_;
  const std::vector<ProtocolUse>& uses_;
  const ProtocolUse* scratch_ = nullptr;
  std::vector<Arm> arms_;
};

// Overrides of budgets select by task alone, so all of them are equally specific.
void take_budget(std::optional<Budget>& target, const std::optional<Budget>& given, std::optional<Budget>& by_override) {
  if (!given) return;
  if (by_override && (by_override->unit != given->unit || by_override->amount != given->amount))
    throw Error("{}: another budget than at {}; leave one of them out", given->origin, by_override->origin);
  target = by_override = given;
}

}  // namespace

std::vector<Arm> arms_of(const Matrix& matrix, const std::vector<ProtocolUse>& uses) { return ArmList(matrix, uses).make(); }

int64_t budget_steps(const Budget& budget, const StageUnits& units) {
  double steps = budget.amount;
  if (budget.unit == BudgetUnit::kEpochs) {
    if (units.train_size <= 0) throw Error("{}: the size of the train split is not known here; give steps or examples", budget.origin);
    steps = budget.amount * units.train_size / units.batch;
  }
  if (budget.unit == BudgetUnit::kExamples) steps = budget.amount / units.batch;
  if (budget.unit == BudgetUnit::kTokens) steps = budget.amount / units.tokens_per_step;
  if (!(steps <= kMostSteps)) throw Error("{}: {:.4g} steps; a stage has at most {:.0e}", budget.origin, steps, kMostSteps);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps - 1e-9)));
}

int64_t pretraining_steps(int64_t finetune, double share) {
  const double steps = static_cast<double>(finetune) * share / (1 - share);
  if (!(steps <= kMostSteps))
    throw Error("budget.pretrain: a share of {} is {:.4g} steps; a stage has at most {:.0e}", share, steps, kMostSteps);
  return std::llround(steps);
}

double step_cost(Basis basis, double batch, double tokens_per_step, double flops_per_step) {
  switch (basis) {
    case Basis::kSteps:
      return 1;
    case Basis::kExamples:
      return batch;
    case Basis::kTokens:
      return tokens_per_step;
    case Basis::kFlops:
      return flops_per_step;
  }
  SPT_CHECK(false, "basis {}", static_cast<int>(basis));
}

int64_t matched_steps(int64_t finetune, int64_t pretrain, double pretrain_cost, double finetune_cost) {
  SPT_CHECK(finetune_cost > 0, "a supervised step costs {}", finetune_cost);
  return finetune + std::llround(static_cast<double>(pretrain) * pretrain_cost / finetune_cost);
}

Budgets budgets_of(const Matrix& matrix, const std::string& task) {
  Budgets result = matrix.budgets, given;
  for (const Override& override : matrix.overrides) {
    if (override.task != task || override.specificity() != 1) continue;
    take_budget(result.finetune, override.budget.finetune, given.finetune);
    take_budget(result.total, override.budget.total, given.total);
    take_budget(result.pretrain, override.budget.pretrain, given.pretrain);
    if (const auto& share = override.budget.share) {
      if (given.share && given.share->value != share->value)
        throw Error("{}: another share than at {}; leave one of them out", share->origin, given.share->origin);
      result.share = given.share = share;
    }
    if (given.pretrain && given.share)
      throw Error("{}: pretraining has a budget of its own at {}; leave one of them out", given.share->origin, given.pretrain->origin);
    if (given.pretrain) result.share.reset();
    if (given.share) result.pretrain.reset();
  }
  return result;
}

}  // namespace spt
