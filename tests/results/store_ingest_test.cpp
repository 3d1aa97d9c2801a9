#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "results/store.h"
#include "tests/results/store_samples.h"

namespace spt::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  EXPECT_THAT(store.clusters("base", "test"), ElementsAre(30, 30, 31));
  EXPECT_THAT(store.clusters("base", "train"), IsEmpty());
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
    text += fmt::format("{} {} {} {} {} {} {}\n", row.job_key, row.status, row.test.value_or(-1), row.validation.value_or(-1), row.steps,
                        row.threads, row.failure_message);
  const Curves curves = store.curves("quick");
  for (const CurvePoint& point : curves.points) {
    const Curve& curve = curves.curves[point.curve];
    text += fmt::format("{} {} {} {} {} {}\n", curve.job_key, curve.stage_key, curve.split, curve.metric, point.step, point.value);
  }
  std::vector<std::string> states;
  for (const auto& [key, s] : store.stage_states())
    states.push_back(fmt::format("{} {} {} {} {} {}\n", key, s.status, s.message, s.attempts, s.oom_attempts, s.step));
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
  EXPECT_EQ(store.curves("quick").points.at(0).value, 0.75);
  store.ingest(Attempt("base", 1).at(0, start()).at(20, evaluation(0.5)));
  EXPECT_EQ(store.curves("quick").points.at(0).value, 0.75);
  ASSERT_THAT(store.curves("quick").points, SizeIs(1));
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
  EXPECT_EQ(row_of(store, "fine").failure_message, "its pretrain stage is timeout");
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
  for (int64_t n = 1; n <= 3; ++n)
    store.fail_attempt("base", store.begin_attempt("base"), n == 2 ? Failure::kKilled : Failure::kOom, "", "");
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

}  // namespace
}  // namespace spt::results
