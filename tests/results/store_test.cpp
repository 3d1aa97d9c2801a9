#include "results/store.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "harness/base/error.h"
#include "tests/results/store_samples.h"

namespace spt::results {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(StorePlan, KeepsLabelsByMatrixAndResultsByJob) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_THAT(store.ingest(whole_attempt("base", 1)), IsEmpty());
  EXPECT_EQ(row_of(store, "base").architecture, "s4d");
  PlannedJob renamed = sample_job("base", "scratch@F", "scratch", {"base"});
  renamed.architecture = "state space";
  renamed.seed = 1;
  store.record_plan(sample_matrix(), {renamed}, {{"base", "finetune", "", "{}", 0}});
  ASSERT_THAT(store.results("quick"), SizeIs(1));
  EXPECT_EQ(row_of(store, "base").architecture, "state space");
  EXPECT_EQ(row_of(store, "base").test, 0.7);
  EXPECT_EQ(store.stage_states().size(), 5u);
}

TEST(StorePlan, KnowsOneJobUnderTwoLabelsAndInTwoMatrices) {
  Store store(":memory:", Store::Mode::kReadWrite);
  PlannedJob first = sample_job("base", "scratch@F", "scratch", {"base"}), second = first;
  second.architecture = "again";
  MatrixRow other = sample_matrix();
  other.id = "other";
  other.first_run_at = "2020-01-01T00:00:00Z";
  store.record_plan(sample_matrix(), {first, second}, {{"base", "finetune", "", "{}", 0}});
  store.record_plan(other, {second}, {{"base", "finetune", "", "{}", 0}});
  store.ingest(whole_attempt("base", 1));
  EXPECT_THAT(store.results("quick"), SizeIs(2));
  EXPECT_EQ(store.results("other").at(0).test, 0.7);
  EXPECT_EQ(store.status("").jobs, 1);
  EXPECT_EQ(store.status("quick").jobs, 1);
  EXPECT_THAT(store.matrices(), ElementsAre(testing::Field(&MatrixRow::id, "other"), testing::Field(&MatrixRow::id, "quick")));
  EXPECT_THAT(store.matrices()[1].seeds, ElementsAre(1u, 18446744073709551615u));
  EXPECT_THAT(store.matrices()[1].first_run_at, testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST(StorePlan, FixesTheAnalysisOnceAStageWasTried) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store, sample_matrix("draft"));
  record_sample(store, sample_matrix("hash-1"));
  EXPECT_FALSE(store.matrices()[0].analysis_changed);
  EXPECT_EQ(store.matrices()[0].analysis_hash, "hash-1");
  store.begin_attempt("pre");
  record_sample(store, sample_matrix("hash-1"));
  EXPECT_FALSE(store.matrices()[0].analysis_changed);
  record_sample(store, sample_matrix("hash-2"));
  EXPECT_TRUE(store.matrices()[0].analysis_changed);
  EXPECT_EQ(store.matrices()[0].analysis_hash, "hash-1");
}

TEST(StorePlan, IsAllOrNothing) {
  Store store(":memory:", Store::Mode::kReadWrite);
  EXPECT_THROW(
      store.record_plan(sample_matrix(), {sample_job("a", "scratch@F", "scratch", {"missing", "a"})}, {{"a", "finetune", "", "{}", 0}}),
      Error);
  EXPECT_THAT(store.matrices(), IsEmpty());
  EXPECT_THAT(store.stage_states(), IsEmpty());
}

TEST(StoreResults, SumTheStagesAndCompareWithTheMatchedArm) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1, 0.0, 3e9));
  store.ingest(whole_attempt("match", 1, 0.72, 3.9e9));
  EXPECT_EQ(row_of(store, "match").match_residual, std::nullopt);
  EXPECT_EQ(row_of(store, "fine").status, "missing");
  EXPECT_EQ(row_of(store, "fine").flops, 0);
  store.ingest(whole_attempt("fine", 1, 0.75, 1e9));
  const ResultRow fine = row_of(store, "fine");
  EXPECT_EQ(fine.flops, 4e9);
  EXPECT_EQ(fine.steps, 800);
  EXPECT_EQ(fine.device_s, 10);
  EXPECT_EQ(fine.pretrain_key, "pre");
  EXPECT_EQ(fine.match_residual, std::nullopt);
  EXPECT_NEAR(row_of(store, "match").match_residual.value(), 4.0 / 3.9 - 1, 1e-12);
}

TEST(StoreResults, MatchOnTheBasisThatTheArmNames) {
  const std::vector<std::pair<std::string, double>> bases = {
      {"scratch@(P+F)", 1.0}, {"scratch@(P+F):tokens", 1.0}, {"scratch@(P+F):flops", 3.0}, {"label: odd@(P+F):wall", 1.0}};
  for (const auto& [arm, residual] : bases) {
    Store store(":memory:", Store::Mode::kReadWrite);
    PlannedJob match = sample_job("match", arm, "matched", {"match"});
    match.pairs_with = "spt-masked@P+F";
    store.record_plan(sample_matrix(), {sample_job("fine", "spt-masked@P+F", "spt", {"pre", "fine"}), match},
                      {{"pre", "pretrain", "", "{}", 0}, {"fine", "finetune", "pre", "{}", 1}, {"match", "finetune", "", "{}", 0}});
    store.ingest(whole_attempt("pre", 1, 0, 3e9));
    store.ingest(whole_attempt("fine", 1, 0, 1e9));
    store.ingest(whole_attempt("match", 1, 0, 1e9));
    EXPECT_DOUBLE_EQ(row_of(store, "match").match_residual.value(), residual) << arm;
  }
}

TEST(MatchedBasis, IsReadFromTheArmsName) {
  EXPECT_EQ(matched_basis("scratch@(P+F)"), "steps");
  EXPECT_EQ(matched_basis("scratch@(P+F):flops"), "flops");
  EXPECT_EQ(matched_basis("scratch@(P+F):flops:half"), "flops");  // two protocols share the label
  EXPECT_EQ(matched_basis("scratch@(P+F):tokens:flops"), "tokens");
  EXPECT_EQ(matched_basis("a:flops@F"), "steps");
  EXPECT_EQ(matched_basis("half"), "steps");
}

TEST(StoreResults, LeaveTuningOut) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1));
  store.ingest(whole_attempt("tuned", 1));
  EXPECT_THAT(store.results("quick"), SizeIs(3));
  for (const Curve& curve : store.curves("quick").curves) EXPECT_NE(curve.job_key, "tuned");
  EXPECT_EQ(store.status("quick").jobs, 4);
  EXPECT_EQ(store.status("quick").done, 1);
  EXPECT_EQ(store.status("quick").planned, 3);
}

TEST(StoreResults, CurvesHaveTheSharedStageUnderEachJobAndNoTestScore) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1));
  store.ingest(whole_attempt("fine", 1));
  const Curves curves = store.curves("quick");
  EXPECT_THAT(curves.points, SizeIs(8));
  for (const Curve& curve : curves.curves) {
    EXPECT_EQ(curve.job_key, "fine");
    EXPECT_NE(curve.split, "test");
    EXPECT_EQ(curve.stage, curve.stage_key == "pre" ? "pretrain" : "finetune");
  }
}

TEST(StoreResults, CurvesAreOfTheWantedKindsAlone) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1));
  store.ingest(whole_attempt("fine", 1));
  const Curves all = store.curves("quick");
  const std::string metric = all.curves.front().metric;
  const Curves some = store.curves("quick", {{"finetune", metric}});
  const auto expected = std::count_if(all.curves.begin(), all.curves.end(),
                                      [&](const Curve& curve) { return curve.stage == "finetune" && curve.metric == metric; });
  EXPECT_GT(expected, 0);
  EXPECT_THAT(some.curves, SizeIs(static_cast<size_t>(expected)));
  for (const Curve& curve : some.curves) EXPECT_TRUE(curve.stage == "finetune" && curve.metric == metric);
  for (const CurvePoint& point : some.points) EXPECT_LT(point.curve, some.curves.size());
  EXPECT_THAT(store.curves("quick", {{"pretrain", "no such metric"}}).points, IsEmpty());
}

TEST(StoreResults, OfAnUnknownMatrixAreEmpty) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_THAT(store.results("nobody"), IsEmpty());
  EXPECT_THAT(store.curves("nobody").points, IsEmpty());
  EXPECT_EQ(store.status("nobody").jobs, 0);
}

TEST(StoreStatus, CountsFailuresByClass) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.fail_attempt("pre", 1, Failure::kDiverged, "nan", "");
  store.block("fine", "pre diverged");
  store.block("tuned", "pre diverged");
  store.fail_attempt("base", 1, Failure::kOom, "", "");
  store.begin_attempt("match");
  const StatusCounts counts = store.status("");
  EXPECT_EQ(counts.jobs, 4);
  EXPECT_EQ(counts.running, 1);
  EXPECT_THAT(counts.failed, UnorderedElementsAre(Pair("blocked", 2), Pair("oom", 1)));
}

TEST(StoreResults, OfAJobWhosePretrainingDivergedAreAnOutcome) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.fail_attempt("pre", 1, Failure::kDiverged, "nan", "");
  store.block("fine", "pre diverged");
  const auto status_of = [&](const std::string& key) {
    for (const ResultRow& row : store.results(store.matrices().at(0).id))
      if (row.job_key == key) return row.status;
    return std::string("no row");
  };
  EXPECT_EQ(status_of("fine"), "diverged");
  store.fail_attempt("pre", 1, Failure::kTimeout, "slow", "");
  EXPECT_EQ(status_of("fine"), "blocked");
}

TEST(StoreIntegrity, OfAFreshDatabaseIsSound) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_EQ(store.integrity_problem(), "");
  EXPECT_EQ(store.note(), "");
  EXPECT_EQ(Store::schema_version(), 3);
}

}  // namespace
}  // namespace spt::results
