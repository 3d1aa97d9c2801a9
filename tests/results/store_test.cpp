#include "results/store.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "tests/results/samples.h"

namespace spt::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

MatrixRow sample_matrix(const std::string& hash = "hash-1") {
  MatrixRow matrix;
  matrix.id = matrix.name = "quick";
  matrix.profile = "fair";
  matrix.reference = "transformer";
  matrix.mode = "finetune";
  matrix.toml = "name = \"quick\"\n";
  matrix.seeds = {1, 18446744073709551615u};
  matrix.analysis_hash = hash;
  matrix.margin = 0.02;
  return matrix;
}

PlannedJob sample_job(const std::string& key, const std::string& arm, const std::string& kind, std::vector<std::string> stages) {
  PlannedJob job;
  job.key = key;
  job.task = "fashion";
  job.architecture = "s4d";
  job.protocol = kind == "spt" ? "spt-masked" : "scratch";
  job.arm = arm;
  job.arm_kind = kind;
  job.name = "fashion/s4d/" + arm + "/seed=1";
  job.seed = 1;
  job.stages = std::move(stages);
  job.metric = "accuracy";
  job.unit = "";
  return job;
}

// Two jobs share the pretraining stage "pre"; "fine" is the spt arm, "match" its matched arm by FLOPs, "base" the scratch arm.
void record_sample(Store& store, const MatrixRow& matrix = sample_matrix()) {
  std::vector<PlannedJob> jobs = {sample_job("base", "scratch@F", "scratch", {"base"}), sample_job("fine", "spt-masked@P+F", "spt", {"pre", "fine"}),
                                  sample_job("match", "scratch@(P+F):flops", "matched", {"match"}),
                                  sample_job("tuned", "spt-masked@P+F", "spt", {"pre", "tuned"})};
  jobs[2].pairs_with = "spt-masked@P+F";
  jobs[3].purpose = "tuning";
  jobs[3].seed = 100;
  store.record_plan(matrix, jobs,
                    {{"fine", "finetune", "pre", "{\"fine\":1}", 1},
                     {"tuned", "finetune", "pre", "{}", 1},
                     {"pre", "pretrain", "", "{}", 0},
                     {"base", "finetune", "", "{}", 0},
                     {"match", "finetune", "", "{}", 0}});
}

// Numbers the lines of an attempt as a worker does.
class Attempt {
 public:
  Attempt(std::string key, int64_t number) : key_(std::move(key)), number_(number) {}
  Attempt& at(int64_t step, Event event) {
    lines_.push_back({key_, number_, static_cast<int64_t>(lines_.size()), step, 1000.0 + static_cast<double>(lines_.size()), std::move(event)});
    return *this;
  }
  operator const std::vector<JournalLine>&() const { return lines_; }
  const std::vector<JournalLine>& lines() const { return lines_; }

 private:
  std::string key_;
  int64_t number_;
  std::vector<JournalLine> lines_;
};

StartEvent start(int64_t threads = 1) {
  StartEvent event;
  event.stamp = sample_stamp();
  event.stamp.threads = threads;
  event.parameters = 1000;
  event.parameters_body = 900;
  event.train_size = 2000;
  event.validation_size = 500;
  event.test_size = 10000;
  event.chance = 0.1;
  event.majority = 0.11;
  return event;
}

DoneEvent done(int64_t selected, double test, double flops) {
  DoneEvent event;
  event.selected_step = selected;
  event.last = {{"validation", "accuracy", 0.75, 500}};
  event.selected = {{"validation", "accuracy", 0.8, 500}, {"test", "accuracy", test, 10000}};
  event.steps = 400;
  event.examples = 400 * 32;
  event.tokens = 400 * 32 * 49;
  event.flops = flops;
  event.train_s = 5;
  event.wall_s = 6;
  event.peak_memory = 1000;
  return event;
}

std::vector<JournalLine> whole_attempt(const std::string& key, int64_t number, double test = 0.7, double flops = 1e9) {
  return Attempt(key, number)
      .at(0, start())
      .at(100, ProgressEvent{0.5, 1e-3, 0.01, 400, "", 0})
      .at(200, EvaluationEvent{1, {{"validation", "accuracy", 0.8, 500}, {"train", "loss", 0.3, 500}}})
      .at(200, CheckpointEvent{"last.safetensors"})
      .at(400, EvaluationEvent{2, {{"validation", "accuracy", 0.75, 500}, {"train", "loss", 0.2, 500}}})
      .at(400, ScoresEvent{"test", "accuracy", {1, 0, 1}, {4, 5, 6}})
      .at(400, done(200, test, flops))
      .lines();
}

ResultRow row_of(const Store& store, const std::string& key) {
  for (const ResultRow& row : store.results("quick"))
    if (row.job_key == key) return row;
  ADD_FAILURE() << "no row " << key;
  return {};
}

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
  EXPECT_THROW(store.record_plan(sample_matrix(), {sample_job("a", "scratch@F", "scratch", {"missing", "a"})}, {{"a", "finetune", "", "{}", 0}}), Error);
  EXPECT_THAT(store.matrices(), IsEmpty());
  EXPECT_THAT(store.stage_states(), IsEmpty());
}

TEST(StoreIngest, GivesEveryNumberOfAResult) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("base", 1, 0.71, 2e9));
  const ResultRow row = row_of(store, "base");
  EXPECT_EQ(row.status, "done");
  EXPECT_EQ(row.test, 0.71);
  EXPECT_EQ(row.validation, 0.8);
  EXPECT_EQ(row.last_validation, 0.75);
  EXPECT_EQ(row.metric, "accuracy");
  EXPECT_EQ(row.chance, 0.1);
  EXPECT_EQ(row.majority, 0.11);
  EXPECT_EQ(row.test_size, 10000);
  EXPECT_EQ(row.parameters, 1000);
  EXPECT_EQ(row.flops, 2e9);
  EXPECT_EQ(row.tokens, 400 * 32 * 49);
  EXPECT_EQ(row.device_s, 5);
  EXPECT_EQ(row.cpu_capability, "AVX512");
  EXPECT_EQ(row.device_model, sample_stamp().device_model);
  EXPECT_EQ(row.pretrain_key, "");
  EXPECT_EQ(row.seed, 1u);
  EXPECT_THAT(store.scores("base", "test"), ElementsAre(1, 0, 1));
  EXPECT_THAT(store.predicted("base", "test"), ElementsAre(4, 5, 6));
  EXPECT_THAT(store.scores("base", "train"), IsEmpty());
  ASSERT_THAT(store.attempt_times(), SizeIs(1));
  EXPECT_EQ(store.attempt_times()[0].stamp, sample_stamp());
  EXPECT_EQ(store.attempt_times()[0].steps, 400);
}

TEST(StoreIngest, TakesEveryEventTwice) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  std::vector<JournalLine> lines;
  for (const Event& event : sample_events()) lines.push_back({"base", 1, static_cast<int64_t>(lines.size()), 360, 1.0, event});
  store.ingest(lines);
  store.ingest(lines);
  EXPECT_EQ(store.stage_states().at("base").attempts, 1);
  EXPECT_EQ(row_of(store, "base").status, "done");
}

// Everything a reader can see of a store, as text.
std::string visible(const Store& store) {
  std::string text;
  for (const ResultRow& row : store.results("quick"))
    text += fmt::format("{} {} {} {} {} {} {}\n", row.job_key, row.status, row.test.value_or(-1), row.validation.value_or(-1), row.steps, row.threads,
                        row.failure_message);
  for (const CurveRow& row : store.curves("quick")) text += fmt::format("{} {} {} {} {} {}\n", row.job_key, row.stage_key, row.split, row.metric, row.step, row.value);
  std::vector<std::string> states;
  for (const auto& [key, s] : store.stage_states()) states.push_back(fmt::format("{} {} {} {} {} {}\n", key, s.status, s.message, s.attempts, s.oom_attempts, s.step));
  std::sort(states.begin(), states.end());
  for (const float score : store.scores("base", "test")) text += fmt::format("{} ", score);
  return text + fmt::format("{}", fmt::join(states, ""));
}

TEST(StoreIngest, IsIdempotentInAnyOrderAndInPieces) {
  std::vector<JournalLine> lines = Attempt("base", 1)
                                       .at(0, start(1))
                                       .at(200, EvaluationEvent{1, {{"validation", "accuracy", 0.6, 500}}})
                                       .at(210, FailedEvent{Failure::kOom, "out of memory", ""})
                                       .lines();
  for (const JournalLine& line : whole_attempt("base", 2)) lines.push_back(line);
  Store straight(":memory:", Store::Mode::kReadWrite);
  record_sample(straight);
  straight.ingest(lines);
  const std::string wanted = visible(straight);
  EXPECT_THAT(wanted, HasSubstr("base done 0.7 0.8 400"));
  EXPECT_THAT(wanted, HasSubstr("base done  2 1 400"));
  straight.ingest(lines);
  EXPECT_EQ(visible(straight), wanted);
  SplitMix64 random(11);
  for (int round = 0; round < 20; ++round) {
    Store store(":memory:", Store::Mode::kReadWrite);
    record_sample(store);
    std::vector<JournalLine> shuffled = lines;
    for (size_t i = shuffled.size() - 1; i > 0; --i) std::swap(shuffled[i], shuffled[random.below(i + 1)]);
    for (const JournalLine& line : shuffled) store.ingest({line});
    for (const JournalLine& line : lines) store.ingest({line});
    EXPECT_EQ(visible(store), wanted) << "round " << round;
  }
}

TEST(StoreIngest, LetsTheLaterAttemptWinAndWarnsUnderAnEqualStamp) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  const auto evaluation = [](double value) { return EvaluationEvent{1, {{"validation", "accuracy", value, 500}}}; };
  EXPECT_THAT(store.ingest(Attempt("base", 1).at(0, start()).at(20, evaluation(0.5))), IsEmpty());
  EXPECT_THAT(store.ingest(Attempt("base", 2).at(0, start()).at(20, evaluation(0.5))), IsEmpty());
  EXPECT_THAT(store.ingest(Attempt("base", 3).at(0, start()).at(20, evaluation(0.625))),
              ElementsAre("stage base step 20: validation accuracy is 0.5 in attempt 2 and 0.625 in attempt 3 under an equal stamp"));
  EXPECT_THAT(store.ingest(Attempt("base", 4).at(0, start(2)).at(20, evaluation(0.75))), IsEmpty());
  EXPECT_EQ(store.curves("quick").at(0).value, 0.75);
  store.ingest(Attempt("base", 1).at(0, start()).at(20, evaluation(0.5)));
  EXPECT_EQ(store.curves("quick").at(0).value, 0.75);
  ASSERT_THAT(store.curves("quick"), SizeIs(1));
}

TEST(StoreIngest, KeepsNanApartFromMissing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_EQ(row_of(store, "base").test, std::nullopt);
  DoneEvent event = done(200, nan, nan);
  event.last = {{"validation", "accuracy", std::numeric_limits<double>::infinity(), 500}};
  EXPECT_THAT(store.ingest(Attempt("base", 1).at(0, start()).at(400, event).lines()), IsEmpty());
  EXPECT_THAT(store.ingest(Attempt("base", 2).at(0, start()).at(400, event).lines()), IsEmpty());
  const ResultRow row = row_of(store, "base");
  ASSERT_TRUE(row.test.has_value());
  EXPECT_TRUE(std::isnan(*row.test));
  EXPECT_TRUE(std::isnan(row.flops));
  EXPECT_EQ(row.last_validation, std::numeric_limits<double>::infinity());
}

TEST(StoreIngest, LeavesOutLinesOfAStageThatNoPlanRecorded) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  std::vector<JournalLine> lines = whole_attempt("base", 1);
  lines.insert(lines.begin(), {sample_line(CheckpointEvent{"f"}, 1, 1, "stranger"), sample_line(CheckpointEvent{"f"}, 1, 2, "stranger")});
  EXPECT_THAT(store.ingest(lines), ElementsAre(HasSubstr("'stranger'")));
  EXPECT_EQ(row_of(store, "base").test, 0.7);
  EXPECT_THROW(store.begin_attempt("stranger"), Error);
}

TEST(StoreStates, FollowTheAttempts) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_EQ(store.stage_states().at("pre").status, "planned");
  EXPECT_EQ(store.begin_attempt("pre"), 1);
  store.ingest(Attempt("pre", 1).at(0, start()).at(7, ProgressEvent{}));
  EXPECT_EQ(store.stage_states({"pre", "nobody"}).size(), 1u);
  EXPECT_EQ(store.stage_states({"pre"}).at("pre").status, "running");
  EXPECT_EQ(store.stage_states({"pre"}).at("pre").step, 7);
  EXPECT_EQ(row_of(store, "fine").status, "running");
  store.fail_attempt("pre", 1, Failure::kTimeout, "60 s", "last words");
  store.fail_attempt("pre", 1, Failure::kTimeout, "60 s", "last words");
  store.ingest(Attempt("pre", 1).at(0, start()).at(8, FailedEvent{Failure::kCrashed, "terminated", ""}));
  const StageState failed = store.stage_states().at("pre");
  EXPECT_EQ(failed.status, "timeout");
  EXPECT_EQ(failed.message, "60 s");
  EXPECT_EQ(failed.log_tail, "last words");
  EXPECT_EQ(row_of(store, "fine").status, "blocked");
  store.block("fine", "pre timed out");
  EXPECT_EQ(row_of(store, "fine").status, "blocked");
  EXPECT_EQ(row_of(store, "fine").failure_message, "pre timed out");
  EXPECT_EQ(store.begin_attempt("pre"), 2);
  EXPECT_EQ(store.stage_states().at("pre").status, "running");
  store.ingest(whole_attempt("pre", 2));
  store.fail_attempt("pre", 2, Failure::kKilled, "too late", "");
  EXPECT_EQ(store.stage_states().at("pre").status, "done");
  EXPECT_EQ(store.begin_attempt("fine"), 1);
  EXPECT_EQ(store.stage_states().at("fine").status, "running");
}

TEST(StoreStates, DoneWinsOverASupervisorThatSawTheWorkerVanish) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.begin_attempt("base");
  store.fail_attempt("base", 1, Failure::kKilled, "gone", "");
  store.ingest(whole_attempt("base", 1));
  EXPECT_EQ(store.stage_states().at("base").status, "done");
  EXPECT_EQ(store.stage_states().at("base").message, "");
}

TEST(StoreStates, CountOutOfMemoryAttempts) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  for (int64_t n = 1; n <= 3; ++n) store.fail_attempt("base", store.begin_attempt("base"), n == 2 ? Failure::kKilled : Failure::kOom, "", "");
  EXPECT_EQ(store.stage_states().at("base").attempts, 3);
  EXPECT_EQ(store.stage_states().at("base").oom_attempts, 2);
}

TEST(StoreStates, RememberHowFarAJournalWasRead) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_EQ(store.ingested_offset("base"), 0u);
  store.set_ingested_offset("base", 1u << 20);
  EXPECT_EQ(store.ingested_offset("base"), 1u << 20);
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
  const std::vector<std::pair<std::string, double>> bases = {{"scratch@(P+F)", 1.0}, {"scratch@(P+F):tokens", 1.0}, {"scratch@(P+F):flops", 3.0},
                                                             {"label: odd@(P+F):wall", 1.0}};
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

TEST(StoreResults, LeaveTuningOut) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1));
  store.ingest(whole_attempt("tuned", 1));
  EXPECT_THAT(store.results("quick"), SizeIs(3));
  for (const CurveRow& row : store.curves("quick")) EXPECT_NE(row.job_key, "tuned");
  EXPECT_EQ(store.status("quick").jobs, 4);
  EXPECT_EQ(store.status("quick").done, 1);
  EXPECT_EQ(store.status("quick").planned, 3);
}

TEST(StoreResults, CurvesHaveTheSharedStageUnderEachJobAndNoTestScore) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  store.ingest(whole_attempt("pre", 1));
  store.ingest(whole_attempt("fine", 1));
  const std::vector<CurveRow> rows = store.curves("quick");
  EXPECT_THAT(rows, SizeIs(8));
  for (const CurveRow& row : rows) {
    EXPECT_EQ(row.job_key, "fine");
    EXPECT_NE(row.split, "test");
    EXPECT_EQ(row.stage, row.stage_key == "pre" ? "pretrain" : "finetune");
  }
}

TEST(StoreResults, OfAnUnknownMatrixAreEmpty) {
  Store store(":memory:", Store::Mode::kReadWrite);
  record_sample(store);
  EXPECT_THAT(store.results("nobody"), IsEmpty());
  EXPECT_THAT(store.curves("nobody"), IsEmpty());
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
  EXPECT_EQ(Store::schema_version(), 1);
}

}  // namespace
}  // namespace spt::results
