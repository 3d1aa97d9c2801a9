#include "harness/worker/stage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/worker/evaluate.h"
#include "tests/worker/bench.h"

namespace spt::worker {
namespace {

using test::Bench;
using test::job_of;

TEST(Evaluate, KeepsDatasetOrderWhateverItsBatches) {
  Bench bench(job_of("classification", ""));
  bench.train();
  const tasks::Dataset& data = *bench.stage.task().validation;
  const Stream mask(1, "mask");
  const EvaluationSetup setup{*bench.model, bench.stage.objective(), at::kCPU, 0, {}};
  const Evaluation all = evaluate(setup, data, all_indices(70), mask);
  double correct = 0;
  for (int64_t i = 0; i < 70; ++i) {
    const Evaluation one = evaluate(setup, data, {i}, mask);
    EXPECT_EQ(one.scores[0], all.scores[i]) << i;
    EXPECT_EQ(all.scores[i], all.predicted[i] == data.label(i) ? 1.0f : 0.0f) << i;
    correct += all.scores[i];
  }
  EXPECT_DOUBLE_EQ(metric_value(all.metrics, "accuracy"), correct / 70);
}

TEST(Evaluate, MasksAreTheSameEveryTime) {
  Bench bench(job_of("classification", "masked"));
  const EvaluationSetup setup{*bench.model, bench.stage.objective(), at::kCPU, 1, {}};
  const Stream mask = bench.stage.rng().stream("mask");
  const Evaluation a = evaluate(setup, *bench.stage.task().validation, all_indices(70), mask);
  const Evaluation b = evaluate(setup, *bench.stage.task().validation, all_indices(70), mask);
  EXPECT_EQ(a.metrics[0].value, b.metrics[0].value);
  EXPECT_EQ(a.metrics[0].n, b.metrics[0].n);
  EXPECT_TRUE(a.scores.empty());
}

TEST(Evaluate, StepsAreTheCeilingsOfEqualShares) {
  EXPECT_EQ(evaluation_steps(400, 4), (std::vector<int64_t>{100, 200, 300, 400}));
  EXPECT_EQ(evaluation_steps(10, 3), (std::vector<int64_t>{4, 7, 10}));
  EXPECT_EQ(evaluation_steps(2, 4), (std::vector<int64_t>{1, 1, 2, 2}));
}

TEST(Evaluate, SelectionTakesTheEarlierOfEqualsAndNeverNan) {
  EXPECT_TRUE(is_better(0.6, 0.5, true));
  EXPECT_FALSE(is_better(0.5, 0.5, true));
  EXPECT_FALSE(is_better(0.6, 0.5, false));
  EXPECT_TRUE(is_better(0.4, 0.5, false));
  EXPECT_FALSE(is_better(NAN, 0.5, true));
  EXPECT_FALSE(is_better(NAN, NAN, true));
  EXPECT_TRUE(is_better(0.0, NAN, true));
  EXPECT_TRUE(is_better(1e9, NAN, false));
}

TEST(Evaluate, TheLastTenthOfTheEvaluationsIsLate) {
  EXPECT_TRUE(selected_late(10, 10));
  EXPECT_FALSE(selected_late(9, 10));
  EXPECT_TRUE(selected_late(19, 20));
  EXPECT_FALSE(selected_late(18, 20));
}

TEST(Stage, TheTrainSampleIsFixedAndAsLargeAsValidation) {
  Bench a(job_of("classification", "")), b(job_of("classification", "masked"), 1);
  EXPECT_EQ(a.stage.train_sample().size(), 40u);  // train is smaller than validation here
  EXPECT_EQ(a.stage.train_sample(), b.stage.train_sample());
}

TEST(Stage, DataThatAreNotTheJobsAreADataError) {
  JobSpec job = test::tiny_job("classification");
  job.data_hash = std::string(64, 'b');
  EXPECT_THROW(Stage(test::tiny_registry(), job, 0, ""), DataError);
}

TEST(Stage, VersionsAndSettingsOfAnotherProgramAreRefused) {
  const auto refused = [](const std::function<void(JobSpec&)>& change) {
    JobSpec job = test::tiny_job("classification", "causal");
    change(job);
    EXPECT_THROW(Stage(test::tiny_registry(), job, 0, ""), Error);
  };
  refused([](JobSpec& job) { job.architecture.version = 1; });
  refused([](JobSpec& job) { job.task.version = 1; });
  refused([](JobSpec& job) { job.init = "normale"; });
  refused([](JobSpec& job) { job.architecture.options["causal"] = false; });
  refused([](JobSpec& job) { job.stages[0].evaluations = 0; });
  refused([](JobSpec& job) { job.stages[0].inputs = "all"; });
  refused([](JobSpec& job) { job.task.options["pathc"] = int64_t{4}; });
}

TEST(Stage, PaperSubsetsAreDrawnFromOneFixedStream) {
  JobSpec one = test::tiny_job("classification"), two = one;
  one.seed = 1, two.seed = 2;
  EXPECT_NE(subset_stream(one).seed("x"), subset_stream(two).seed("x"));
  one.profile = two.profile = "paper";
  EXPECT_EQ(subset_stream(one).seed("x"), subset_stream(two).seed("x"));
}

TEST(Stage, ChanceIsTestsMajorityAndTheTrivialAnswerIsTrains) {
  const tasks::OpenedTask task = test::tiny_task("classification").open({}, "", Stream(1, "subset"));
  int64_t train_ones = 0, test_ones = 0;
  for (int64_t i = 0; i < 40; ++i) train_ones += task.train->label(i);
  for (int64_t i = 0; i < 30; ++i) test_ones += task.test->label(i);
  const Baseline baseline = trivial_baseline(task);
  EXPECT_DOUBLE_EQ(baseline.chance, std::max(test_ones, 30 - test_ones) / 30.0);
  EXPECT_DOUBLE_EQ(baseline.majority, (train_ones > 20 ? test_ones : 30 - test_ones) / 30.0);
  const tasks::OpenedTask values = test::tiny_task("regression").open({}, "", Stream(1, "subset"));
  const at::Tensor train = values.train->batch(all_indices(40)).targets, test = values.test->batch(all_indices(30)).targets;
  const double mse = (test - train.mean(0, true)).square().mean().item<double>(), var = (test - test.mean()).square().mean().item<double>();
  EXPECT_NEAR(trivial_baseline(values).majority, 1 - mse / var, 1e-5);
}

TEST(StageCost, TheExpectationIsTheMeanOfWhatIsExecuted) {
  for (const auto& [kind, order] : std::vector<std::pair<std::string, std::string>>{
           {"classification", "shuffled"}, {"pairs", "shuffled"}, {"classification", "bucketed"}})
    for (const char* pretraining : {"", "masked", "causal"}) {
      JobSpec job = job_of(kind, pretraining, [&order = order](TrainOptions& o) {
        o.order = order;
        o.bucket_batches = 5;
      });
      job.stages[0].steps = 4000;
      Bench bench(job);
      const tasks::TaskFacts& facts = bench.stage.task().facts;
      const Sampler sampler = stage_sampler(bench.setup());
      double executed = 0, tokens = 0;
      for (int64_t step = 0; step < 400; ++step)
        for (const protocols::Prepared& part : parts_of_step(bench.setup(), sampler, step)) {
          executed += bench.stage.cost().part(part) / 400;
          tokens += static_cast<double>(part.tokens) / 400;
        }
      const double expected =
          bench.stage.cost().expected_step(facts.train_lengths, bench.stage.objective(), facts.documents, bench.stage.spec().train);
      EXPECT_NEAR(executed / expected, 1.0, 0.01) << kind << " " << pretraining;
      EXPECT_NEAR(tokens / (16.0 * static_cast<double>(facts.documents) * mean_length(facts.train_lengths)), 1.0, 0.02)
          << kind << " " << pretraining;
    }
}

TEST(StageCost, PretrainingOnPairsPaysForBothDocuments) {
  for (const char* pretraining : {"masked", "causal"}) {
    Bench one(job_of("classification", pretraining)), two(job_of("pairs", pretraining));
    const std::vector<std::pair<int64_t, int64_t>> equal_rows = {{8, 1000}};
    const double single = one.stage.cost().expected_step(equal_rows, one.stage.objective(), 1, {.batch = 16});
    const double pairs = two.stage.cost().expected_step(equal_rows, two.stage.objective(), 2, {.batch = 16});
    const double fixed =
        2 * single - one.stage.cost().expected_step(equal_rows, one.stage.objective(), 1, {.batch = 32});  // paid once a batch
    EXPECT_NEAR(pairs, 2 * single - fixed, 1e-9 * pairs) << pretraining;
  }
}

TEST(StageCost, PartsDifferByAtMostOne) {
  EXPECT_EQ(part_sizes(16, 5), (std::vector<int64_t>{3, 3, 3, 3, 4}));
  EXPECT_EQ(part_sizes(4, 4), (std::vector<int64_t>(4, 1)));
  EXPECT_THROW(part_sizes(4, 5), Error);
}

}  // namespace
}  // namespace spt::worker
