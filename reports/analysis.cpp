#include "reports/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "harness/base/error.h"

namespace spt::reports {
namespace {

using results::ResultRow;
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

struct ArmRows {
  std::string name, kind, protocol;
  std::set<std::string> pairs_with;
};

/// Rows of one task, by labels.
struct TaskRows {
  std::string task;
  std::vector<std::string> architectures;
  std::set<std::string> trivial;
  std::vector<ArmRows> arms;
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, const ResultRow*>> cells;
  std::set<uint64_t> seeds;  // of every architecture that is no baseline
  double sign = 1, chance = kNotKnown;

  const ArmRows* find_arm(const std::string& name) const {
    const auto found = std::find_if(arms.begin(), arms.end(), [&](const ArmRows& arm) { return arm.name == name; });
    return found == arms.end() ? nullptr : &*found;
  }
  bool has(const std::string& architecture, const std::string& arm) const { return cells.contains({architecture, arm}); }
  const ResultRow* row(const std::string& architecture, const std::string& arm, uint64_t seed) const {
    const auto cell = cells.find({architecture, arm});
    if (cell == cells.end()) return nullptr;
    const auto found = cell->second.find(seed);
    return found == cell->second.end() ? nullptr : found->second;
  }
};

int rank_of_kind(const std::string& kind) { return kind == "scratch" ? 0 : kind == "spt" ? 1 : 2; }

void add_row_to_task(TaskRows& task, const ResultRow& row) {
  if (std::find(task.architectures.begin(), task.architectures.end(), row.architecture) == task.architectures.end()) {
    task.architectures.push_back(row.architecture);
  }
  if (row.trivial) task.trivial.insert(row.architecture);
  if (!row.trivial) task.seeds.insert(row.seed);
  if (!task.find_arm(row.arm)) task.arms.push_back({row.arm, row.arm_kind, row.protocol, {}});
  const auto arm = std::find_if(task.arms.begin(), task.arms.end(), [&](const ArmRows& other) { return other.name == row.arm; });
  if (!row.pairs_with.empty()) arm->pairs_with.insert(row.pairs_with);
  const auto [at, added] = task.cells[{row.architecture, row.arm}].try_emplace(row.seed, &row);
  if (!added && at->second->job_key != row.job_key) {
    throw Error("two jobs are called {} / {} / {} / seed {}: {} and {}", row.task, row.architecture, row.arm, row.seed, at->second->job_key,
                row.job_key);
  }
}

std::vector<TaskRows> group_by_task(const results::MatrixRow& matrix, std::span<const ResultRow> rows) {
  std::vector<TaskRows> tasks;
  std::unordered_map<std::string, size_t> places;
  for (const ResultRow& row : rows) {
    const auto [place, added] = places.try_emplace(row.task, tasks.size());
    if (added) tasks.emplace_back().task = row.task;
    add_row_to_task(tasks[place->second], row);
  }
  for (TaskRows& task : tasks) {
    std::stable_sort(task.arms.begin(), task.arms.end(),
                     [](const ArmRows& a, const ArmRows& b) { return rank_of_kind(a.kind) < rank_of_kind(b.kind); });
    std::stable_sort(task.architectures.begin(), task.architectures.end(), [&](const std::string& a, const std::string& b) {
      const auto rank = [&](const std::string& name) { return task.trivial.contains(name) ? 2 : name == matrix.reference ? 0 : 1; };
      return rank(a) < rank(b);
    });
  }
  return tasks;
}

/// A statistic that is linear in u: sum of weight x u(architecture, arm, s).
struct Term {
  std::string architecture, arm;
  double weight = 1;
};

/// The pretraining run that a row comes from, "" if none. Between architectures, all rows from given weights are of one run, whatever their
/// seeds.
std::string pretraining_run(const ResultRow& row, bool across_architectures) {
  return across_architectures && row.architecture.ends_with(results::kExternalLabel) ? "given weights" : row.pretrain_key;
}

/// Seeds that share a pretraining run in any arm of the statistic form one unit.
std::vector<std::vector<uint64_t>> units_of(const TaskRows& task, const std::set<uint64_t>& seeds, std::span<const Term> terms) {
  const std::vector<uint64_t> list(seeds.begin(), seeds.end());
  std::vector<size_t> root(list.size());
  std::iota(root.begin(), root.end(), size_t{0});
  const auto find = [&](size_t i) {
    while (root[i] != i) i = root[i];
    return i;
  };
  const bool across =
      std::any_of(terms.begin(), terms.end(), [&](const Term& term) { return term.architecture != terms.front().architecture; });
  for (const Term& term : terms) {
    std::unordered_map<std::string, size_t> first;
    for (size_t i = 0; i < list.size(); ++i) {
      const ResultRow* row = task.row(term.architecture, term.arm, list[i]);
      const std::string run = row ? pretraining_run(*row, across) : "";
      if (run.empty()) continue;
      const auto [at, added] = first.try_emplace(run, i);
      if (!added) root[find(i)] = find(at->second);
    }
  }
  std::map<size_t, std::vector<uint64_t>> units;
  for (size_t i = 0; i < list.size(); ++i) units[find(i)].push_back(list[i]);
  std::vector<std::vector<uint64_t>> result;
  for (auto& [first, members] : units) result.push_back(std::move(members));
  return result;
}

SeedValue value_of_unit(const TaskRows& task, std::span<const uint64_t> seeds, std::span<const Term> terms) {
  SeedValue unit{SeedOutcome::kDone, 0};
  for (uint64_t seed : seeds) {
    for (const Term& term : terms) {
      const ResultRow* row = task.row(term.architecture, term.arm, seed);
      const SeedOutcome outcome = outcome_of(row);
      unit.outcome = std::max(unit.outcome, outcome);  // done < diverged < incomplete
      const double metric = outcome == SeedOutcome::kDone ? *row->test : task.chance;
      unit.value += term.weight * task.sign * metric / static_cast<double>(seeds.size());
    }
  }
  return unit;
}

std::vector<SeedValue> seed_values(const TaskRows& task, const std::set<uint64_t>& seeds, std::span<const Term> terms) {
  std::vector<SeedValue> values;
  for (const auto& unit : units_of(task, seeds, terms)) values.push_back(value_of_unit(task, unit, terms));
  return values;
}

std::vector<Term> gap_terms(const std::string& reference, const std::string& architecture, const std::string& arm, double weight = 1) {
  return {{reference, arm, weight}, {architecture, arm, -weight}};
}

std::vector<Term> operator+(std::vector<Term> a, const std::vector<Term>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Both sides over the same units: terms of weight 0 carry the outcomes and pretraining runs of the other side.
SeedRatio ratio_of(const TaskRows& task, const std::vector<Term>& numerator, const std::vector<Term>& denominator) {
  const auto silent = [](std::vector<Term> terms) {
    for (Term& term : terms) term.weight = 0;
    return terms;
  };
  return summarise_ratio(seed_values(task, task.seeds, numerator + silent(denominator)),
                         seed_values(task, task.seeds, silent(numerator) + denominator));
}

void fill_facts(TaskAnalysis& analysis, TaskRows& rows) {
  analysis.chance = analysis.majority = kNotKnown;
  bool first = true;
  for (const auto& [labels, seeds] : rows.cells) {
    for (const auto& [seed, row] : seeds) {
      if (first || (analysis.test_size == 0 && row->test_size > 0)) {
        analysis.metric = row->metric;
        analysis.unit = row->unit;
        analysis.higher_is_better = row->higher_is_better;
        analysis.train_size = row->train_size;
        analysis.validation_size = row->validation_size;
        analysis.test_size = row->test_size;
        if (row->test_size > 0) {
          analysis.majority = row->majority;
          analysis.chance = row->chance > 0 ? row->chance : row->majority;  // chance 0: no classes
        }
        first = false;
      }
      analysis.partial_data |= row->partial_data;
    }
  }
  rows.sign = analysis.higher_is_better ? 1 : -1;
  rows.chance = analysis.chance;
}

double mean_over_done(const CellAnalysis& cell, double (*read)(const ResultRow&)) {
  std::vector<double> values;
  for (const CellSeed& seed : cell.seeds) {
    if (outcome_of(seed.row) == SeedOutcome::kDone) values.push_back(read(*seed.row));
  }
  return mean(values);
}

void fill_costs(CellAnalysis& cell) {
  cell.parameters = mean_over_done(cell, [](const ResultRow& row) { return static_cast<double>(row.parameters); });
  cell.flops = mean_over_done(cell, [](const ResultRow& row) { return row.flops; });
  cell.steps = mean_over_done(cell, [](const ResultRow& row) { return static_cast<double>(row.steps); });
  cell.examples = mean_over_done(cell, [](const ResultRow& row) { return static_cast<double>(row.examples); });
  cell.tokens = mean_over_done(cell, [](const ResultRow& row) { return static_cast<double>(row.tokens); });
  cell.device_s = mean_over_done(cell, [](const ResultRow& row) { return row.device_s; });
  cell.peak_memory = mean_over_done(cell, [](const ResultRow& row) { return static_cast<double>(row.peak_memory); });
}

bool has_failed(const ResultRow* row) { return row && results::failure_from_name(row->status).has_value(); }

CellAnalysis analyse_cell(const TaskAnalysis& task, const TaskRows& rows, const std::string& architecture, const ArmRows& arm) {
  CellAnalysis cell;
  cell.architecture = architecture;
  cell.arm = arm.name;
  cell.arm_kind = arm.kind;
  cell.protocol = arm.protocol;
  cell.trivial = rows.trivial.contains(architecture);
  std::set<uint64_t> seeds = rows.seeds;
  if (cell.trivial) {  // a baseline that draws nothing is planned for one seed
    seeds.clear();
    for (const auto& [seed, row] : rows.cells.at({architecture, arm.name})) seeds.insert(seed);
  }
  for (uint64_t seed : seeds) cell.seeds.push_back({seed, rows.row(architecture, arm.name, seed)});
  const Term own{architecture, arm.name, rows.sign};  // sign x u = the metric itself
  cell.score = summarise_seeds(seed_values(rows, seeds, {&own, 1}));
  for (const CellSeed& seed : cell.seeds) {
    cell.failed += has_failed(seed.row);
    if (outcome_of(seed.row) != SeedOutcome::kDone) continue;
    cell.seeds_at_chance += at_chance(*seed.row->test, task.chance, task.test_size, task.higher_is_better);
    cell.not_converged += seed.row->not_converged;
    if (seed.row->match_residual) cell.match_residual = std::max(cell.match_residual.value_or(0), std::abs(*seed.row->match_residual));
  }
  cell.at_chance = cell.score.survivors.n > 0 && at_chance(cell.score.survivors.mean, task.chance, task.test_size, task.higher_is_better);
  fill_costs(cell);
  return cell;
}

/// The arms that a pretraining arm is compared with. A matched arm says which it answers; one that says nothing answers all. Scratch at F
/// is the protocol's own where it has one (a causal protocol changes the model).
struct ArmTriple {
  const ArmRows* spt = nullptr;
  const ArmRows* matched = nullptr;
  const ArmRows* scratch = nullptr;
};

std::vector<ArmTriple> arm_triples(const TaskRows& task) {
  std::vector<ArmTriple> triples;
  for (const ArmRows& spt : task.arms) {
    if (spt.kind != "spt") continue;
    const ArmRows* scratch = nullptr;
    std::vector<const ArmRows*> matched;
    int best = -1;
    for (const ArmRows& arm : task.arms) {
      const bool answers = arm.pairs_with.contains(spt.name);
      if (arm.kind == "matched" && (answers || arm.pairs_with.empty())) matched.push_back(&arm);
      const int fit = answers ? 3 : arm.protocol == spt.protocol ? 2 : arm.protocol == "scratch" ? 1 : 0;
      if (arm.kind == "scratch" && fit > best) {
        best = fit;
        scratch = &arm;
      }
    }
    if (matched.empty()) matched.push_back(nullptr);
    for (const ArmRows* arm : matched) triples.push_back({&spt, arm, scratch});
  }
  return triples;
}

class TaskAnalyser {
 public:
  TaskAnalyser(TaskAnalysis& analysis, const TaskRows& rows) : analysis_(analysis), rows_(rows), triples_(arm_triples(rows)) {}

  void run(const std::string& reference) {
    for (const std::string& architecture : rows_.architectures) {
      for (const ArmRows& arm : rows_.arms) {
        if (rows_.has(architecture, arm.name)) analysis_.cells.push_back(analyse_cell(analysis_, rows_, architecture, arm));
      }
    }
    const bool known = std::find(rows_.architectures.begin(), rows_.architectures.end(), reference) != rows_.architectures.end();
    if (known && !rows_.trivial.contains(reference)) analysis_.reference = reference;
    for (const std::string& architecture : rows_.architectures) {
      if (rows_.trivial.contains(architecture)) continue;
      add_effects(architecture);
      if (analysis_.reference.empty() || architecture == reference) continue;
      add_gaps(architecture);
      add_pretraining(architecture);
    }
  }

 private:
  SeedSummary summary(const std::vector<Term>& terms) const { return summarise_seeds(seed_values(rows_, rows_.seeds, terms)); }

  bool both_have(const std::string& architecture, const ArmRows* arm) const {
    return arm && rows_.has(architecture, arm->name) && rows_.has(analysis_.reference, arm->name);
  }

  bool any_at_chance(const std::string& architecture, std::initializer_list<const ArmRows*> arms) const {
    return std::any_of(analysis_.cells.begin(), analysis_.cells.end(), [&](const CellAnalysis& cell) {
      const bool involved = std::any_of(arms.begin(), arms.end(), [&](const ArmRows* arm) { return arm && arm->name == cell.arm; });
      return cell.at_chance && involved && (cell.architecture == architecture || cell.architecture == analysis_.reference);
    });
  }

  void add_gaps(const std::string& architecture) {
    for (const ArmRows& arm : rows_.arms) {
      if (!both_have(architecture, &arm)) continue;
      GapAnalysis gap{architecture, arm.name, summary(gap_terms(analysis_.reference, architecture, arm.name)), std::nullopt};
      std::vector<double> reference_values, own_values;
      for (uint64_t seed : rows_.seeds) {
        const ResultRow* theirs = rows_.row(analysis_.reference, arm.name, seed);
        const ResultRow* ours = rows_.row(architecture, arm.name, seed);
        if (outcome_of(theirs) != SeedOutcome::kDone || outcome_of(ours) != SeedOutcome::kDone) continue;
        reference_values.push_back(*theirs->test);
        own_values.push_back(*ours->test);
      }
      gap.correlation = pair_correlation(reference_values, own_values);
      analysis_.gaps.push_back(std::move(gap));
    }
  }

  void add_pretraining(const std::string& architecture) {
    const std::string& reference = analysis_.reference;
    for (const auto& [spt, matched, scratch] : triples_) {
      if (!both_have(architecture, spt)) continue;
      const bool has_matched = both_have(architecture, matched), has_scratch = both_have(architecture, scratch);
      PretrainingAnalysis result;
      result.architecture = architecture;
      result.spt = spt->name;
      if (has_matched) {
        result.matched = matched->name;
        const auto g_spt = gap_terms(reference, architecture, spt->name), g_matched = gap_terms(reference, architecture, matched->name);
        const auto difference = g_matched + gap_terms(reference, architecture, spt->name, -1);
        result.primary = summary(difference);
        result.gap_closed = ratio_of(rows_, g_spt, g_matched);
        result.gap_closed->survivors = one_minus(result.gap_closed->survivors);
        if (result.gap_closed->imputed) result.gap_closed->imputed = one_minus(*result.gap_closed->imputed);
        result.matched_reversed = summary(g_matched).survivors.mean < 0;
        result.matched_floor = any_at_chance(architecture, {spt, matched});
        if (has_scratch) {
          const auto g_scratch = gap_terms(reference, architecture, scratch->name);
          result.by_compute = ratio_of(rows_, g_scratch + gap_terms(reference, architecture, matched->name, -1), g_scratch);
          result.by_pretraining = ratio_of(rows_, difference, g_scratch);
        }
      }
      if (has_scratch) {
        result.scratch = scratch->name;
        result.scratch_reversed = summary(gap_terms(reference, architecture, scratch->name)).survivors.mean < 0;
        result.scratch_floor = any_at_chance(architecture, {spt, matched, scratch});
      }
      analysis_.pretraining.push_back(std::move(result));
    }
  }

  void add_effects(const std::string& architecture) {
    for (const auto& [spt, matched, scratch] : triples_) {
      if (!rows_.has(architecture, spt->name)) continue;
      EffectAnalysis effect;
      effect.architecture = architecture;
      effect.spt = spt->name;
      const bool has_matched = matched && rows_.has(architecture, matched->name),
                 has_scratch = scratch && rows_.has(architecture, scratch->name);
      if (has_matched) effect.matched = matched->name;
      if (has_scratch) effect.scratch = scratch->name;
      if (has_matched) effect.pretraining = summary({{architecture, spt->name, 1}, {architecture, matched->name, -1}});
      if (has_scratch) effect.total = summary({{architecture, spt->name, 1}, {architecture, scratch->name, -1}});
      if (has_matched && has_scratch) effect.compute = summary({{architecture, matched->name, 1}, {architecture, scratch->name, -1}});
      analysis_.effects.push_back(std::move(effect));
    }
  }

  TaskAnalysis& analysis_;
  const TaskRows& rows_;
  std::vector<ArmTriple> triples_;
};

}  // namespace

SeedOutcome outcome_of(const results::ResultRow* row) {
  if (!row) return SeedOutcome::kIncomplete;
  if (row->status == "diverged") return SeedOutcome::kDiverged;
  const bool measured = row->status == "done" && row->test && !std::isnan(*row->test);
  return measured ? SeedOutcome::kDone : SeedOutcome::kIncomplete;
}

std::vector<TaskAnalysis> analyse(const results::MatrixRow& matrix, std::span<const results::ResultRow> rows) {
  std::vector<TaskAnalysis> analyses;
  for (TaskRows& task : group_by_task(matrix, rows)) {
    TaskAnalysis analysis;
    analysis.task = task.task;
    fill_facts(analysis, task);
    TaskAnalyser(analysis, task).run(matrix.reference);
    analyses.push_back(std::move(analysis));
  }
  return analyses;
}

}  // namespace spt::reports
