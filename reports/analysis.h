#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/stats.h"
#include "results/record.h"

namespace spt::reports {

/// One planned job of a cell; `row` is null where the database has none.
struct CellSeed {
  uint64_t seed = 0;
  const results::ResultRow* row = nullptr;
};

/// Architecture x arm on one task. Costs are means over the seeds that are done, NaN where none is.
struct CellAnalysis {
  std::string architecture, arm, arm_kind, protocol;
  bool trivial = false;
  std::vector<CellSeed> seeds;
  SeedSummary score;  ///< primary test metric, in its own unit and direction
  size_t seeds_at_chance = 0;
  bool at_chance = false;  ///< the mean is
  size_t not_converged = 0;
  size_t failed = 0;  ///< seeds that ended without a result; neither done nor still to come
  double parameters = 0, flops = 0, steps = 0, examples = 0, tokens = 0, device_s = 0, peak_memory = 0;
  std::optional<double> match_residual;  ///< the largest of the seeds
};

/// g_a(A, s) = u_a(R, s) - u_a(A, s), u the metric turned so that higher is better.
struct GapAnalysis {
  std::string architecture, arm;
  SeedSummary gap;
  std::optional<double> correlation;  ///< of u(R, s) and u(A, s) over seeds: what pairing gains
};

/// What pretraining does to the lead of the reference over one architecture; g as above, its means over seeds.
struct PretrainingAnalysis {
  std::string architecture, spt, matched, scratch;          ///< labels of the arms; "" where the matrix has none
  std::optional<SeedSummary> primary;                       ///< I(A) = mean of g_matched - g_spt
  std::optional<SeedRatio> gap_closed;                      ///< 1 - g_spt/g_matched
  std::optional<SeedRatio> by_compute;                      ///< (g_scratch - g_matched)/g_scratch
  std::optional<SeedRatio> by_pretraining;                  ///< (g_matched - g_spt)/g_scratch
  bool matched_reversed = false, scratch_reversed = false;  ///< mean g < 0: the architecture leads
  bool matched_floor = false, scratch_floor = false;        ///< an arm in the ratios over g_matched, g_scratch is at chance
};

/// What more steps and what pretraining bring within one architecture, in u.
struct EffectAnalysis {
  std::string architecture, spt, matched, scratch;
  std::optional<SeedSummary> compute;      ///< u_matched - u_scratch
  std::optional<SeedSummary> pretraining;  ///< u_spt - u_matched
  std::optional<SeedSummary> total;        ///< u_spt - u_scratch
};

struct TaskAnalysis {
  std::string task, metric, unit;
  bool higher_is_better = true;
  double chance = 0;    ///< c: the majority rate of the test split; without classes the score of the mean predictor. NaN: not known yet
  double majority = 0;  ///< test score of always predicting train's majority class or mean. NaN: not known yet
  int64_t train_size = 0, validation_size = 0, test_size = 0;
  bool partial_data = false;
  std::string reference;            ///< "" where this task has no job of it
  std::vector<CellAnalysis> cells;  ///< by architecture (reference first, trivial ones last), then arm (scratch, spt, matched)
  std::vector<GapAnalysis> gaps;
  std::vector<PretrainingAnalysis> pretraining;
  std::vector<EffectAnalysis> effects;
};

/// Everything of definitions.md 6 that one matrix needs, task by task in the order of the rows; `rows` must outlive the result. Pairs are
/// made by seed, by design: the planned seeds of a task are all that any of its rows has, and a seed without a row is incomplete in that
/// cell. Seeds that share a pretraining run in any arm of a statistic are averaged first and count once.
///
/// Outcomes: a row is done with status `done` and a test value, diverged with status `diverged`, else incomplete.
/// Errors: Error if two different jobs stand under the same labels.
std::vector<TaskAnalysis> analyse(const results::MatrixRow& matrix, std::span<const results::ResultRow> rows);

SeedOutcome outcome_of(const results::ResultRow* row);

}  // namespace spt::reports
