#include "harness/worker/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/worker/checkpoint.h"
#include "results/journal.h"
#include "tests/worker/doubles.h"
#include "tests/worker/stage_folder.h"

namespace spt::worker {
namespace {

namespace fs = std::filesystem;
using results::DoneEvent, results::EvaluationEvent, results::FailedEvent, results::StartEvent;
using test::Folder;

double value_of(const std::vector<results::Metric>& metrics, const std::string& split, const std::string& name) {
  for (const results::Metric& metric : metrics)
    if (metric.split == split && metric.name == name) return metric.value;
  ADD_FAILURE() << "no " << split << " " << name;
  return NAN;
}

std::vector<std::tuple<std::string, std::string, double, int64_t>> rows(const std::vector<results::Metric>& metrics) {
  std::vector<std::tuple<std::string, std::string, double, int64_t>> all;
  for (const results::Metric& m : metrics) all.emplace_back(m.split, m.name, m.value, m.n);
  return all;
}

void expect_same_result(const DoneEvent& a, const DoneEvent& b) {
  EXPECT_EQ(rows(a.selected), rows(b.selected));
  EXPECT_EQ(rows(a.last), rows(b.last));
  EXPECT_EQ(a.selected_step, b.selected_step);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.examples, b.examples);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.flops, b.flops);
}

class RunnerKinds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Doubles, RunnerKinds, testing::Values("classification", "pairs", "regression", "sequence-to-sequence"));

TEST_P(RunnerKinds, TellTheWholeStoryInTheJournal) {
  Folder folder(GetParam());
  ASSERT_TRUE(folder.run(test::tiny_job(GetParam()), 0));
  const auto start = folder.events<StartEvent>(0);
  ASSERT_EQ(start.size(), 1u);
  EXPECT_GT(start[0].parameters, start[0].parameters_body);
  EXPECT_GT(start[0].parameters_body, 0);
  EXPECT_EQ(start[0].notes, (std::vector<std::string>{"no duplicates"}));
  EXPECT_EQ(start[0].test_size, 30);
  const auto evaluations = folder.events<EvaluationEvent>(0);
  ASSERT_EQ(evaluations.size(), 4u);
  std::vector<int64_t> at;
  for (const results::JournalLine& line : folder.lines(0))
    if (std::holds_alternative<EvaluationEvent>(line.event)) at.push_back(line.step);
  EXPECT_EQ(at, (std::vector<int64_t>{6, 12, 18, 23}));
  const DoneEvent done = folder.done(0);
  EXPECT_EQ(done.steps, 23);
  EXPECT_EQ(done.examples, 23 * 16);
  EXPECT_GT(done.flops, 0);
  EXPECT_GT(done.peak_memory, 1 << 20);
  EXPECT_TRUE(done.reload_equal);
  const auto scores = folder.events<results::ScoresEvent>(0);
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].split, "test");
  EXPECT_EQ(scores[0].scores.size(), 30u);
  const std::string metric = scores[0].metric;
  double mean = 0;
  for (const float score : scores[0].scores) mean += score / 30;
  EXPECT_NEAR(value_of(done.selected, "test", metric == "r2" ? "mse" : metric), mean, 1e-6);
  EXPECT_EQ(scores[0].predicted.size(), metric == "accuracy" ? 30u : 0u);
  std::vector<int32_t> clusters;  // those of the task, where it has any
  for (int32_t i = 0; metric == "r2" && i < 30; ++i) clusters.push_back(i / 4);
  EXPECT_EQ(scores[0].clusters, clusters);
  EXPECT_FALSE(fs::exists(folder.stage(0) / "last.safetensors"));
  EXPECT_TRUE(fs::exists(folder.stage(0) / "best.safetensors"));
}

TEST(Runner, SelectsTheBestValidationMetricAndTheEarlierOfTies) {
  Folder folder("selection");
  JobSpec job = test::tiny_job("classification");
  job.stages[0].evaluations = 12;
  ASSERT_TRUE(folder.run(job, 0));
  double best = -1;
  int64_t selected = 0;
  for (const results::JournalLine& line : folder.lines(0)) {
    const auto* event = std::get_if<EvaluationEvent>(&line.event);
    if (event == nullptr) continue;
    const double accuracy = value_of(event->metrics, "validation", "accuracy");
    if (accuracy > best) best = accuracy, selected = line.step;
  }
  EXPECT_EQ(folder.done(0).selected_step, selected);
  EXPECT_EQ(value_of(folder.done(0).selected, "validation", "accuracy"), best);
  EXPECT_EQ(read_best(folder.stage(0) / "best.safetensors").step, selected);
}

TEST(Runner, TwoRunsGiveTheSameNumbersAndThreadsOfThePrefetcherChangeNone) {
  Folder a("same-a"), b("same-b");
  ASSERT_TRUE(a.run(test::tiny_job("classification"), 0, [](RunRequest& r) { r.prefetch_threads = 0; }));
  ASSERT_TRUE(b.run(test::tiny_job("classification"), 0, [](RunRequest& r) { r.prefetch_threads = 4; }));
  expect_same_result(a.done(0), b.done(0));
  EXPECT_EQ(a.best_bytes(0), b.best_bytes(0));
}

/// Runs the stage until its `batches`-th batch is made (of training or evaluation), when SIGTERM seems to arrive. Whether it was done
/// before.
bool run_until(Folder& folder, const JobSpec& job, int64_t index, int64_t batches) {
  test::on_batch() = [&batches] {
    if (--batches == 0) set_stop_requested(true);
  };
  const bool done = folder.run(job, index, [](RunRequest& r) { r.prefetch_threads = 0; });
  test::on_batch() = {};
  set_stop_requested(false);
  return done;
}

TEST(Runner, AStageStoppedEveryFewBatchesGivesTheStraightRunBitForBit) {
  for (const char* pretraining : {"", "masked", "causal"}) {
    Folder straight("straight"), stopped("stopped");
    const JobSpec job = test::tiny_job("classification", pretraining);
    ASSERT_TRUE(straight.run(job, 0));
    int stops = 0;  // in steps, and within evaluations, which take 3 batches
    while (!run_until(stopped, job, 0, 4 + stops % 3)) {
      ASSERT_EQ(stopped.events<FailedEvent>(0).back().failure, results::Failure::kKilled);
      ASSERT_LT(++stops, 100);
    }
    EXPECT_GE(stops, 4);
    expect_same_result(straight.done(0), stopped.done(0));
    EXPECT_EQ(straight.best_bytes(0), stopped.best_bytes(0));
    EXPECT_EQ(stopped.events<StartEvent>(0).back().resume_note, "resumed");
  }
}

TEST(Runner, TheJournalSaysHowTheParametersOfEachRoleBegan) {
  Folder folder("init");
  JobSpec job = test::tiny_job("classification", "masked");
  job.init = "normal";
  ASSERT_TRUE(folder.run(job, 0));
  ASSERT_TRUE(folder.run(job, 1));
  for (const int64_t index : {0, 1}) {
    const auto begun = folder.events<results::InitEvent>(index);
    ASSERT_EQ(begun.size(), 1u);
    EXPECT_EQ(begun[0].init, "normal");
    for (const results::InitGroup& group : begun[0].groups) {
      EXPECT_TRUE(group.redrawn);
      EXPECT_NEAR(group.std, 0.1, 0.05) << group.role;
    }
  }
  job.init = "norml";
  EXPECT_FALSE(folder.run(job, 0));
}

TEST(Runner, EveryOptimizersStateIsInTheCheckpoint) {
  for (const char* optimizer : {"adam", "sgd"}) {
    JobSpec job = test::tiny_job("classification");
    job.stages[0].train.optimizer = optimizer;
    Folder straight(std::string("straight-") + optimizer), stopped(std::string("stopped-") + optimizer);
    ASSERT_TRUE(straight.run(job, 0));
    int stops = 0;
    while (!run_until(stopped, job, 0, 4 + stops % 3)) ASSERT_LT(++stops, 100);
    EXPECT_GE(stops, 2);
    expect_same_result(straight.done(0), stopped.done(0));
    EXPECT_EQ(straight.best_bytes(0), stopped.best_bytes(0));
  }
}

TEST(Runner, APlateauThatWasStoppedDropsWhereTheStraightRunDoes) {
  JobSpec job = test::tiny_job("classification", "masked");
  job.stages[0].evaluations = 12;
  job.stages[0].train.schedule = "plateau";
  job.stages[0].train.patience = 0;
  job.stages[0].train.lr = 0.2;  // so large that not every evaluation is better
  Folder straight("plateau"), stopped("plateau-stopped"), constant("no-plateau");
  ASSERT_TRUE(straight.run(job, 0));
  int stops = 0;
  while (!run_until(stopped, job, 0, 4 + stops % 3)) ASSERT_LT(++stops, 100);
  EXPECT_GE(stops, 4);
  expect_same_result(straight.done(0), stopped.done(0));
  EXPECT_EQ(straight.best_bytes(0), stopped.best_bytes(0));
  job.stages[0].train.schedule = "constant";
  ASSERT_TRUE(constant.run(job, 0));
  EXPECT_NE(rows(constant.done(0).last), rows(straight.done(0).last)) << "it never dropped";
}

TEST(Runner, APretrainingStageFeedsTheNextAndTheAuditSaysHow) {
  Folder folder("chain");
  const JobSpec job = test::tiny_job("regression", "masked");
  ASSERT_TRUE(folder.run(job, 0));
  EXPECT_TRUE(folder.events<results::ScoresEvent>(0).empty());  // pretraining reads no test example
  for (const results::Metric& metric : folder.done(0).selected) EXPECT_EQ(metric.split, "validation");
  ASSERT_TRUE(folder.run(job, 1));
  const auto audit = folder.events<results::TransferEvent>(1);
  ASSERT_EQ(audit.size(), 1u);
  EXPECT_EQ(audit[0].sliced, (std::vector<std::string>{"encoder.weight"}));
  EXPECT_EQ(audit[0].redrawn, (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(audit[0].copied.size() + audit[0].sliced.size() + audit[0].redrawn.size(), 7u);
  EXPECT_EQ(folder.done(1).steps, 23);
}

TEST(Runner, AFirstStageStartsFromGivenWeightsAsAnyOtherDoesFromTheStageBefore) {
  Folder chain("before"), given("given");
  const JobSpec whole = test::tiny_job("regression", "masked");
  ASSERT_TRUE(chain.run(whole, 0));
  ASSERT_TRUE(chain.run(whole, 1));
  JobSpec job = test::tiny_job("regression");
  const std::string weights = (chain.stage(0) / "best.safetensors").string();
  job.checkpoint = {weights, sha256_file(weights)};
  ASSERT_TRUE(given.run(job, 0));
  expect_same_result(given.done(0), chain.done(1));
  const auto audit = given.events<results::TransferEvent>(0), before = chain.events<results::TransferEvent>(1);
  ASSERT_EQ(audit.size(), 1u);
  EXPECT_EQ(audit[0].copied, before[0].copied);
  EXPECT_EQ(audit[0].sliced, before[0].sliced);
  EXPECT_EQ(audit[0].redrawn, before[0].redrawn);
  EXPECT_EQ(audit[0].dropped, before[0].dropped);
}

TEST(Runner, WeightsThatAreNotThoseOfThePlanAreRefused) {
  Folder chain("planned"), given("changed");
  ASSERT_TRUE(chain.run(test::tiny_job("regression", "masked"), 0));
  JobSpec job = test::tiny_job("regression");
  job.checkpoint = {(chain.stage(0) / "best.safetensors").string(), std::string(64, 'b')};
  EXPECT_FALSE(given.run(job, 0));
  const FailedEvent failed = given.events<FailedEvent>(0).back();
  EXPECT_EQ(failed.failure, results::Failure::kData);
  EXPECT_NE(failed.message.find("the job was planned for " + std::string(64, 'b')), std::string::npos) << failed.message;
}

TEST(Runner, APretrainedCheckpointOfAnotherStageIsRefused) {
  Folder folder("foreign");
  JobSpec job = test::tiny_job("classification", "masked");
  ASSERT_TRUE(folder.run(job, 0));
  job.stages[0].train.lr = 0.5;
  EXPECT_FALSE(folder.run(job, 1));
  EXPECT_EQ(folder.events<FailedEvent>(1).back().failure, results::Failure::kCrashed);
}

TEST(Runner, ADamagedCheckpointRestartsTheStageAndSaysSo) {
  Folder straight("undamaged");
  const JobSpec job = test::tiny_job("classification");
  ASSERT_TRUE(straight.run(job, 0));
  for (const bool truncate : {true, false}) {
    Folder folder("damaged");
    ASSERT_FALSE(run_until(folder, job, 0, 5));
    const fs::path last = folder.stage(0) / "last.safetensors";
    std::string bytes = read_file(last);
    if (truncate) bytes.resize(bytes.size() / 2);
    else bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
    write_file_atomically(last, bytes);
    ASSERT_TRUE(folder.run(job, 0));
    const StartEvent start = folder.events<StartEvent>(0).back();
    EXPECT_EQ(start.resumed_from, 0);
    EXPECT_EQ(start.resume_note.find("restarted: "), 0u) << start.resume_note;
    expect_same_result(straight.done(0), folder.done(0));
  }
}

TEST(Runner, ALostBestRestartsTheStage) {
  Folder folder("lost");
  const JobSpec job = test::tiny_job("classification");
  ASSERT_FALSE(run_until(folder, job, 0, 11));  // after the first evaluation
  ASSERT_TRUE(fs::remove(folder.stage(0) / "best.safetensors"));
  ASSERT_TRUE(folder.run(job, 0));
  EXPECT_EQ(folder.events<StartEvent>(0).back().resumed_from, 0);
}

TEST(Runner, ACheckpointOfAnotherBuildRestartsUnlessAllowed) {
  const JobSpec job = test::tiny_job("classification");
  for (const bool across : {false, true}) {
    Folder folder("build");
    ASSERT_FALSE(run_until(folder, job, 0, 5));
    const fs::path file = folder.stage(0) / "last.safetensors";
    LoadedLast last = read_last(file);
    last.stamp.build_id = "another";
    const Stage stage(test::tiny_registry(), job, 0, "");
    const auto model = stage.fresh_model(at::kCPU);
    const auto optimizer = stage.optimizer(*model);
    restore_last(last, *model, *optimizer, "here");
    save_last(file, *model, *optimizer, last.state, last.stage_key, last.stamp);
    ASSERT_TRUE(folder.run(job, 0, [&](RunRequest& r) { r.resume_across = across; }));
    const StartEvent start = folder.events<StartEvent>(0).back();
    EXPECT_EQ(start.resumed_from > 0, across);
    EXPECT_NE(start.resume_note.find("build another -> "), std::string::npos) << start.resume_note;
  }
}

TEST(Runner, DivergenceIsAnOutcomeWithItsTensor) {
  Folder folder("diverged");
  JobSpec job = test::tiny_job("regression");
  job.stages[0].train.lr = 1e38;
  job.stages[0].train.clip = 0;
  EXPECT_FALSE(folder.run(job, 0));
  const auto failed = folder.events<FailedEvent>(0);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].failure, results::Failure::kDiverged);
  EXPECT_FALSE(failed[0].tensor.empty());
  EXPECT_TRUE(folder.events<DoneEvent>(0).empty());
  EXPECT_GT(folder.lines(0).back().step, 0);
}

TEST(Runner, AStageWithoutOneFiniteEvaluationHasDiverged) {
  Folder folder("nothing-counted");
  JobSpec job = test::tiny_job("classification", "masked");
  job.stages[0].objective.options["ratio"] = 1e-12;  // nothing is hidden, so nothing can be evaluated
  EXPECT_FALSE(folder.run(job, 0));
  EXPECT_EQ(folder.events<FailedEvent>(0).back().failure, results::Failure::kDiverged);
  EXPECT_EQ(folder.events<FailedEvent>(0).back().tensor, "validation loss");
}

TEST(Runner, FailuresHaveTheirClass) {
  Folder folder("classes");
  JobSpec job = test::tiny_job("classification");
  job.data_hash = std::string(64, 'b');
  EXPECT_FALSE(folder.run(job, 0));
  EXPECT_EQ(folder.events<FailedEvent>(0).back().failure, results::Failure::kData);
  job = test::tiny_job("classification");
  EXPECT_FALSE(folder.run(job, 0, [](RunRequest& r) { r.stage_key = std::string(64, '0'); }));
  EXPECT_EQ(folder.events<FailedEvent>(0).back().failure, results::Failure::kCrashed);
  EXPECT_FALSE(folder.run(job, 0, [](RunRequest& r) { r.device = "tpu"; }));
  EXPECT_NE(folder.events<FailedEvent>(0).back().message.find("unknown device 'tpu'"), std::string::npos);
  const auto classed = [](const auto& error) {
    try {
      throw error;
    } catch (...) {
      return failure_in_flight().failure;
    }
  };
  EXPECT_EQ(classed(std::bad_alloc()), results::Failure::kOom);
  EXPECT_EQ(
      classed(c10::Error("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes. Error code 12", c10::Backtrace())),
      results::Failure::kOom);
  EXPECT_EQ(classed(c10::Error("shapes differ", c10::Backtrace())), results::Failure::kCrashed);
  EXPECT_EQ(classed(7), results::Failure::kCrashed);
}

TEST(Runner, ARequestThatCannotBeReadIsAnError) {
  Folder folder("request");
  fs::create_directories(folder.stage(0));
  EXPECT_THROW(run_stage(folder.stage(0), test::tiny_registry()), Error);
  write_file_atomically(folder.stage(0) / "request.json", "{\"job\": 1}");
  EXPECT_THROW(run_stage(folder.stage(0), test::tiny_registry()), Error);
}

}  // namespace
}  // namespace spt::worker
