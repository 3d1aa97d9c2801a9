#include "reports/analysis.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "harness/base/error.h"
#include "reports/curves.h"
#include "tests/reports/rows.h"

namespace spt::reports {
namespace {

using testing::HasSubstr;
using testing_rows::add_curves;
using testing_rows::fail;
using testing_rows::row_of;
using testing_rows::sample_input;

TaskAnalysis only_task(const ReportInput& input) {
  const auto tasks = analyse(input.matrix, input.rows);
  EXPECT_EQ(tasks.size(), 1u);
  return tasks.at(0);
}

const CellAnalysis& cell_of(const TaskAnalysis& task, const std::string& architecture, const std::string& arm) {
  for (const CellAnalysis& cell : task.cells) {
    if (cell.architecture == architecture && cell.arm == arm) return cell;
  }
  throw std::runtime_error("no such cell");
}

std::vector<double> tests_of(ReportInput& input, const std::string& architecture, const std::string& arm) {
  std::vector<double> values;
  for (uint64_t seed : input.matrix.seeds) values.push_back(*row_of(input, architecture, arm, seed).test);
  return values;
}

std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

TEST(Analysis, FollowsTheDefinitionsOnCompleteRows) {
  ReportInput input = sample_input();
  const TaskAnalysis task = only_task(input);
  const auto g_f = minus(tests_of(input, "transformer", "scratch@F"), tests_of(input, "s4d", "scratch@F"));
  const auto g_m = minus(tests_of(input, "transformer", "scratch@(P+F)"), tests_of(input, "s4d", "scratch@(P+F)"));
  const auto g_s = minus(tests_of(input, "transformer", "spt-masked@P+F"), tests_of(input, "s4d", "spt-masked@P+F"));
  ASSERT_EQ(task.gaps.size(), 3u);
  EXPECT_NEAR(task.gaps[0].gap.survivors.mean, mean(g_f), 1e-12);
  EXPECT_NEAR(task.gaps[1].gap.survivors.mean, mean(g_s), 1e-12);
  ASSERT_EQ(task.pretraining.size(), 1u);
  const PretrainingAnalysis& row = task.pretraining[0];
  EXPECT_NEAR(row.primary->survivors.mean, mean(g_m) - mean(g_s), 1e-12);
  EXPECT_NEAR(row.primary->survivors.interval->low, estimate_mean(minus(g_m, g_s)).interval->low, 1e-12);
  EXPECT_NEAR(row.gap_closed->survivors.ratio, 1 - mean(g_s) / mean(g_m), 1e-12);
  EXPECT_NEAR(row.gap_closed->survivors.interval->high, 1 - fieller(g_s, g_m).interval->low, 1e-12);
  EXPECT_NEAR(row.by_compute->survivors.ratio, (mean(g_f) - mean(g_m)) / mean(g_f), 1e-12);
  EXPECT_NEAR(row.by_pretraining->survivors.ratio, (mean(g_m) - mean(g_s)) / mean(g_f), 1e-12);
  EXPECT_NEAR(row.by_pretraining->survivors.interval->low, fieller(minus(g_m, g_s), g_f).interval->low, 1e-12);
  EXPECT_FALSE(row.matched_reversed || row.matched_floor || row.scratch_reversed || row.scratch_floor);
  ASSERT_EQ(task.effects.size(), 2u);
  EXPECT_NEAR(task.effects[1].pretraining->survivors.mean,
              mean(tests_of(input, "s4d", "spt-masked@P+F")) - mean(tests_of(input, "s4d", "scratch@(P+F)")), 1e-12);
  EXPECT_NEAR(task.effects[1].compute->survivors.mean + task.effects[1].pretraining->survivors.mean, task.effects[1].total->survivors.mean,
              1e-12);
}

TEST(Analysis, PutsTheReferenceFirstAndBaselinesLast) {
  ReportInput input = sample_input();
  std::reverse(input.rows.begin(), input.rows.end());
  const TaskAnalysis task = only_task(input);
  ASSERT_EQ(task.cells.size(), 7u);
  EXPECT_EQ(task.cells[0].architecture, "transformer");
  EXPECT_EQ(task.cells[0].arm, "scratch@F");
  EXPECT_EQ(task.cells[1].arm, "spt-masked@P+F");
  EXPECT_EQ(task.cells[6].architecture, "linear");
  EXPECT_TRUE(task.cells[6].score.counts.complete());  // planned for one seed alone
  EXPECT_EQ(task.gaps.size(), 3u);                     // none of the baseline
}

TEST(Analysis, TurnsErrorsSoThatHigherIsBetter) {
  ReportInput input = sample_input();
  for (results::ResultRow& row : input.rows) {
    row.higher_is_better = false;
    row.metric = "mse";
    row.chance = 0;
    row.majority = 0.7;
  }
  const TaskAnalysis task = only_task(input);
  EXPECT_GT(cell_of(task, "transformer", "scratch@F").score.survivors.mean, 0);  // in its own direction
  EXPECT_LT(task.gaps[0].gap.survivors.mean, 0);                                 // the reference has the larger error
  EXPECT_EQ(task.chance, 0.7);
  const auto errors = tests_of(input, "transformer", "scratch@F");
  const auto at_chance =
      std::count_if(errors.begin(), errors.end(), [](double error) { return error >= 0.7; });  // the mean predictor's, or more
  EXPECT_EQ(cell_of(task, "transformer", "scratch@F").seeds_at_chance, static_cast<size_t>(at_chance));
  EXPECT_GT(at_chance, 0);
  EXPECT_EQ(cell_of(task, "s4d", "scratch@F").seeds_at_chance, 0u);
}

TEST(Analysis, ImputesDivergedSeedsAtChanceEverywhere) {
  ReportInput input = sample_input();
  fail(row_of(input, "s4d", "spt-masked@P+F", 3), "diverged");
  const TaskAnalysis task = only_task(input);
  const SeedSummary& score = cell_of(task, "s4d", "spt-masked@P+F").score;
  EXPECT_EQ(score.counts.diverged, 1u);
  EXPECT_NEAR(score.imputed->mean, (4 * score.survivors.mean + 0.1) / 5, 1e-12);
  const SeedSummary& gap = task.gaps[1].gap;
  EXPECT_EQ(gap.counts.done, 4u);
  EXPECT_NEAR(5 * gap.imputed->mean, 4 * gap.survivors.mean + *row_of(input, "transformer", "spt-masked@P+F", 3).test - 0.1, 1e-12);
  EXPECT_EQ(task.gaps[0].gap.counts.diverged, 0u);  // another arm
  EXPECT_EQ(task.pretraining[0].primary->counts.diverged, 1u);
  EXPECT_EQ(task.pretraining[0].by_compute->counts.diverged, 0u);  // scratch arms alone
  EXPECT_EQ(task.pretraining[0].by_pretraining->counts.diverged, 1u);
}

TEST(Analysis, AMissingPartnerIsIncompleteAndNoReasonToDropThePair) {
  ReportInput input = sample_input();
  std::erase_if(input.rows,
                [](const results::ResultRow& row) { return row.architecture == "s4d" && row.arm == "scratch@F" && row.seed == 2; });
  fail(row_of(input, "transformer", "scratch@(P+F)", 1), "blocked");
  const TaskAnalysis task = only_task(input);
  EXPECT_EQ(cell_of(task, "s4d", "scratch@F").score.counts.incomplete(), 1u);
  EXPECT_EQ(task.gaps[0].gap.counts.incomplete(), 1u);
  EXPECT_EQ(task.gaps[2].gap.counts.incomplete(), 1u);
  EXPECT_EQ(task.gaps[1].gap.counts.incomplete(), 0u);
  EXPECT_EQ(task.pretraining[0].by_pretraining->counts.incomplete(), 2u);
}

TEST(Analysis, CountsDistinctPretrainingRuns) {
  ReportInput input = sample_input();
  row_of(input, "s4d", "spt-masked@P+F", 2).pretrain_key = row_of(input, "s4d", "spt-masked@P+F", 1).pretrain_key;
  const TaskAnalysis task = only_task(input);
  const SeedSummary& score = cell_of(task, "s4d", "spt-masked@P+F").score;
  const auto values = tests_of(input, "s4d", "spt-masked@P+F");
  EXPECT_EQ(score.survivors.n, 4u);
  EXPECT_NEAR(score.survivors.mean, ((values[0] + values[1]) / 2 + values[2] + values[3] + values[4]) / 4, 1e-12);
  EXPECT_EQ(task.gaps[1].gap.survivors.n, 4u);
  EXPECT_EQ(task.gaps[0].gap.survivors.n, 5u);
  EXPECT_EQ(task.pretraining[0].gap_closed->survivors.n, 4u);
}

TEST(Analysis, GivenWeightsHaveNoIntervalAcrossArchitectures) {
  ReportInput input = sample_input();
  for (results::ResultRow& row : input.rows)
    if (row.architecture == "s4d") row.architecture += results::kExternalLabel;
  const TaskAnalysis task = only_task(input);
  EXPECT_TRUE(cell_of(task, "s4d+external", "scratch@F").score.survivors.interval) << "over what came after the weights";
  const SeedSummary plain = only_task(sample_input()).gaps[0].gap;
  for (const GapAnalysis& gap : task.gaps) {
    EXPECT_EQ(gap.gap.survivors.n, 1u);
    EXPECT_FALSE(gap.gap.survivors.interval);
  }
  EXPECT_NEAR(task.gaps[0].gap.survivors.mean, plain.survivors.mean, 1e-12);
  EXPECT_EQ(task.pretraining[0].gap_closed->survivors.n, 1u);
}

TEST(Analysis, MatchesEachPretrainingArmWithItsOwnScratchArms) {
  ReportInput input = sample_input();
  for (const results::ResultRow& row : sample_input().rows) {  // a causal protocol with scratch arms of its own
    if (row.trivial) continue;
    results::ResultRow causal = row;
    causal.protocol = "spt-causal";
    causal.arm = row.arm_kind == "spt" ? "spt-causal@P+F" : "spt-causal:" + row.arm;
    causal.pairs_with = row.arm_kind == "matched" ? "spt-causal@P+F" : "";
    causal.job_key += "causal";
    input.rows.push_back(causal);
  }
  const TaskAnalysis task = only_task(input);
  ASSERT_EQ(task.pretraining.size(), 2u);
  EXPECT_EQ(task.pretraining[0].scratch, "scratch@F");
  EXPECT_EQ(task.pretraining[0].matched, "scratch@(P+F)");
  EXPECT_EQ(task.pretraining[1].spt, "spt-causal@P+F");
  EXPECT_EQ(task.pretraining[1].scratch, "spt-causal:scratch@F");
  EXPECT_EQ(task.pretraining[1].matched, "spt-causal:scratch@(P+F)");
}

TEST(Analysis, ComparesWithEveryBasisOfTheMatch) {
  ReportInput input = sample_input();
  for (const results::ResultRow& row : sample_input().rows) {
    if (row.arm_kind != "matched") continue;
    input.rows.push_back(row);
    input.rows.back().arm += ":flops";
    input.rows.back().job_key += "flops";
  }
  const TaskAnalysis task = only_task(input);
  ASSERT_EQ(task.pretraining.size(), 2u);
  EXPECT_EQ(task.pretraining[1].matched, "scratch@(P+F):flops");
}

TEST(Analysis, AJobUnderTwoPretrainingArmsIsOneJob) {
  ReportInput input = sample_input();
  results::ResultRow twin = row_of(input, "s4d", "scratch@(P+F)", 1);
  twin.pairs_with = "spt-other@P+F";
  input.rows.push_back(twin);
  EXPECT_EQ(cell_of(only_task(input), "s4d", "scratch@(P+F)").score.counts.planned, 5u);
  input.rows.back().job_key = "another";
  EXPECT_THROW(analyse(input.matrix, input.rows), Error);
}

TEST(Analysis, AStatusOfDoneWithoutAValueIsNotDone) {
  results::ResultRow row;
  row.status = "done";
  EXPECT_EQ(outcome_of(&row), SeedOutcome::kIncomplete);
  row.test = std::nan("");
  EXPECT_EQ(outcome_of(&row), SeedOutcome::kIncomplete);
  row.test = 0.5;
  EXPECT_EQ(outcome_of(&row), SeedOutcome::kDone);
  EXPECT_EQ(outcome_of(nullptr), SeedOutcome::kIncomplete);
}

TEST(Analysis, WithoutTheReferenceThereAreNoGaps) {
  ReportInput input = sample_input();
  input.matrix.reference = "mamba";
  const TaskAnalysis task = only_task(input);
  EXPECT_EQ(task.reference, "");
  EXPECT_TRUE(task.gaps.empty());
  EXPECT_TRUE(task.pretraining.empty());
  EXPECT_EQ(task.effects.size(), 2u);
}

TEST(LearningCurves, AverageOverSeedsAndBreakWhereOneDiverged) {
  ReportInput input = sample_input();
  fail(row_of(input, "s4d", "scratch@F", 2), "diverged");
  fail(row_of(input, "s4d", "scratch@(P+F)", 4), "crashed");
  add_curves(input, 10);
  const auto curves = learning_curves(analyse(input.matrix, input.rows), input.curves);
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].figures.size(), 2u);
  const CurveFigure& supervised = curves[0].figures[0];
  ASSERT_EQ(supervised.panels.size(), 2u);
  EXPECT_EQ(supervised.panels[0].title, "fashion, validation");
  ASSERT_EQ(supervised.panels[0].lines.size(), 6u);
  const CurveLine& diverged = supervised.panels[0].lines[3];
  EXPECT_EQ(diverged.label, "s4d scratch@F");
  ASSERT_EQ(diverged.points.size(), 10u);
  EXPECT_TRUE(std::isfinite(diverged.points[4].mean));
  EXPECT_TRUE(std::isnan(diverged.points[5].mean));
  EXPECT_LT(diverged.points[4].low, diverged.points[4].mean);
  EXPECT_EQ(supervised.panels[0].lines[5].label, "s4d scratch@(P+F) (4 of 5 seeds)");
  EXPECT_EQ(supervised.panels[0].lines[5].colour, 1u);
  EXPECT_EQ(supervised.panels[0].lines[5].dash, 2u);
  EXPECT_EQ(curves[0].figures[1].y_label, "loss");
  EXPECT_EQ(curves[0].figures[1].panels[0].lines.size(), 2u);
}

TEST(LearningCurves, AMillionRowsAreThinnedForFiles) {
  ReportInput input = sample_input({.seeds = {1}});
  add_curves(input, 20000);
  ASSERT_GT(input.curves.points.size(), 200000u);
  const auto curves = learning_curves(analyse(input.matrix, input.rows), input.curves);
  EXPECT_EQ(curves[0].figures[0].panels[0].lines[0].points.size(), 20000u);
  EXPECT_LE(curves_data(curves).rows.size(), 16u * 2000);
}

}  // namespace
}  // namespace spt::reports
