#include "harness/worker/train.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/worker/evaluate.h"
#include "tests/worker/doubles.h"

namespace spt::worker {
namespace {

/// A stage of the tiny job put together by hand, in float64.
struct Bench {
  explicit Bench(const JobSpec& spec, size_t index = 0) : job(spec), stage(test::tiny_registry(), job, index, "") {
    model = stage.fresh_model(at::kCPU);
    optimizer = stage.optimizer(*model);
  }
  TrainSetup setup(int64_t threads = 0) {
    return {*model,      *optimizer, stage.objective(), stage.train_data(), stage.spec().train, stage.spec().steps,
            stage.rng(), at::kCPU,   threads,           stage.cost()};
  }
  std::vector<StepReport> train(int64_t threads = 0, const std::function<void()>& between = {}) {
    std::vector<StepReport> reports;
    train_stage(setup(threads), totals, [&](const StepReport& report) {
      reports.push_back(report);
      if (between) between();
      return true;
    });
    return reports;
  }
  at::Tensor flat() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model->parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all);
  }
  JobSpec job;
  Stage stage;
  std::shared_ptr<models::Model> model;
  std::unique_ptr<protocols::Optimizer> optimizer;
  TrainTotals totals;
};

JobSpec job_of(const std::string& kind, const std::string& pretraining, const std::function<void(TrainOptions&)>& change = {}) {
  JobSpec job = test::tiny_job(kind, pretraining);
  for (StageSpec& stage : job.stages) {
    stage.train.precision = "float64";
    if (change) change(stage.train);
  }
  return job;
}

TEST(TrainStage, LearnsATaskThatCanBeLearnt) {
  JobSpec job = job_of("classification", "", [](TrainOptions& o) { o.dropout = 0; });
  job.stages[0].steps = 150;
  Bench bench(job);
  const auto reports = bench.train();
  EXPECT_GT(reports.front().loss, 0.5);
  EXPECT_LT(reports.back().loss, 0.25);
  EXPECT_EQ(bench.totals.step, 150);
  EXPECT_EQ(bench.totals.examples, 150 * 16);
  EXPECT_GT(bench.totals.flops, 0);
  EXPECT_EQ(bench.optimizer->steps(), 150);
}

TEST(TrainStage, PrefetchThreadsAndRepetitionChangeNothing) {
  Bench none(job_of("classification", "masked")), again(job_of("classification", "masked")), one(job_of("classification", "masked")),
      four(job_of("classification", "masked"));
  none.train(0), again.train(0), one.train(1), four.train(4);
  for (const Bench* other : {&again, &one, &four}) EXPECT_TRUE(torch::equal(none.flat(), other->flat()));
  EXPECT_EQ(none.totals.tokens, four.totals.tokens);
  EXPECT_EQ(none.totals.flops, four.totals.flops);
}

TEST(TrainStage, AnotherSeedChangesTheWeights) {
  JobSpec other = job_of("classification", "masked");
  other.seed = 6;
  Bench a(job_of("classification", "masked")), b(other);
  a.train(), b.train();
  EXPECT_FALSE(torch::equal(a.flat(), b.flat()));
}

TEST(TrainStage, EvaluationInBetweenChangesNothing) {
  Bench with(job_of("classification", "masked")), without(job_of("classification", "masked"));
  without.train();
  const Stream mask = with.stage.rng().stream("mask");
  with.train(1, [&] {
    evaluate({*with.model, with.stage.objective(), at::kCPU, 1, {}}, *with.stage.task().validation, all_indices(70), mask);
  });
  EXPECT_TRUE(torch::equal(with.flat(), without.flat()));
}

class Accumulation : public testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Objectives, Accumulation,
                         testing::Values(std::pair{"classification", ""}, std::pair{"classification", "masked"},
                                         std::pair{"classification", "causal"}, std::pair{"regression", "masked"},
                                         std::pair{"regression", ""}, std::pair{"sequence-to-sequence", ""}));

TEST_P(Accumulation, PartsEqualTheLargeBatchWithRaggedRowsAndMasks) {
  const auto options = [](int64_t parts) {
    return [parts](TrainOptions& o) {
      o.dropout = 0;
      o.accumulate = parts;
    };
  };
  Bench whole(job_of(GetParam().first, GetParam().second, options(1)));
  whole.train();
  for (const int64_t parts : {4, 5, 16}) {  // 5 does not divide 16
    Bench split(job_of(GetParam().first, GetParam().second, options(parts)));
    split.train();
    EXPECT_LT((whole.flat() - split.flat()).abs().max().item<double>(), 1e-6) << parts << " parts";
    EXPECT_EQ(whole.totals.tokens, split.totals.tokens);
  }
}

TEST(TrainStage, MorePartsThanExamplesAreRefused) {
  Bench bench(job_of("classification", "", [](TrainOptions& o) { o.accumulate = 17; }));
  EXPECT_THROW(bench.train(), Error);
}

TEST(TrainStage, ABatchWithNothingCountedHasLossZeroAndItsStepCounts) {
  JobSpec job = job_of("classification", "masked");
  job.stages[0].objective.options["ratio"] = 1e-12;  // nothing is ever hidden
  Bench bench(job);
  const at::Tensor before = bench.flat().clone();
  const auto reports = bench.train();
  EXPECT_EQ(bench.totals.step, job.stages[0].steps);
  for (const StepReport& report : reports) EXPECT_EQ(report.loss, 0);
  EXPECT_EQ(bench.optimizer->steps(), job.stages[0].steps);
  EXPECT_FALSE(torch::equal(before, bench.flat()));  // weight decay is part of a step
}

TEST(TrainStage, TheLearningRateFollowsTheScheduleOverTheWholeStage) {
  Bench bench(job_of("classification", ""));
  const auto reports = bench.train();
  ASSERT_EQ(reports.size(), 23u);  // W = 3
  EXPECT_DOUBLE_EQ(reports[0].lr, 0.02 / 3);
  EXPECT_DOUBLE_EQ(reports[2].lr, 0.02);
  EXPECT_DOUBLE_EQ(reports[13].lr, 0.02 * 0.5 * (1 + std::cos(M_PI * 10.0 / 20.0)));
}

TEST(TrainStage, EveryScheduleOfAJobIsOneThatTheLoopKnows) {
  for (const OptionSchema& option : schema_of<TrainOptions>())
    if (option.name == "schedule") {
      EXPECT_EQ(option.info.choices, protocols::schedule_names());
    }
}

TEST(TrainStage, EveryOptimizerOfAJobTrains) {
  for (const OptionSchema& option : schema_of<TrainOptions>()) {
    if (option.name != "optimizer") continue;
    EXPECT_EQ(option.info.choices, protocols::optimizer_names());
    for (const std::string& name : option.info.choices) {
      Bench bench(job_of("classification", "", [&](TrainOptions& o) {
        o.optimizer = name;
        o.dropout = 0;
      }));
      const auto reports = bench.train();
      EXPECT_LT(reports.back().loss, reports.front().loss) << name;
    }
  }
}

TEST(TrainStage, DropsComeAfterTheirShareOfTheStage) {
  TrainOptions options;
  options.schedule = "multistep";
  options.milestones = "0.5, 0.9";
  const protocols::Schedule at = stage_schedule(options, 200, true);
  EXPECT_EQ(at.milestones, (std::vector<int64_t>{100, 180}));
  EXPECT_EQ(at.warmup, 20);
  options.schedule = "step";
  options.drop_every = 0.1;
  EXPECT_EQ(stage_schedule(options, 200, true).step_size, 20);
  EXPECT_EQ(stage_schedule(options, 3, true).step_size, 1);
}

TEST(TrainStage, APlateauFollowsTheEvaluationsThatItIsGiven) {
  Bench bench(job_of("classification", "", [](TrainOptions& o) {
    o.schedule = "plateau";
    o.patience = 0;
    o.gamma = 0.5;
  }));
  std::vector<double> evaluations;
  TrainSetup setup = bench.setup();
  setup.evaluations = &evaluations;
  std::vector<double> rates;
  train_stage(setup, bench.totals, [&](const StepReport& report) {
    rates.push_back(report.lr);
    if (bench.totals.step == 10) evaluations = {0.5};
    if (bench.totals.step == 15) evaluations = {0.5, 0.4};  // accuracy: lower is worse
    return true;
  });
  EXPECT_DOUBLE_EQ(rates[14], 0.02);
  EXPECT_DOUBLE_EQ(rates[15], 0.01);
  EXPECT_DOUBLE_EQ(rates[22], 0.01);
}

TEST(TrainStage, StoppingAndGoingOnInTheMiddleOfAnEpochIsTheStraightRun) {
  Bench straight(job_of("classification", "masked"));
  straight.train();
  Bench broken(job_of("classification", "masked"));
  for (int part = 0; part < 20; ++part) {  // 40 examples, batch 16: every stop is inside an epoch
    train_stage(broken.setup(part % 3), broken.totals, [](const StepReport&) { return false; });
  }
  EXPECT_EQ(broken.totals.step, 14);
  EXPECT_TRUE(torch::equal(straight.flat(), broken.flat()));
}

TEST(TrainStage, AnInfiniteLossIsCalledBad) {
  Bench bench(job_of("classification", ""));
  {
    const torch::NoGradGuard no_grad;
    bench.model->named_parameters()["head.bias"][0] = NAN;
  }
  try {
    bench.train();
    FAIL();
  } catch (const Diverged& diverged) {
    EXPECT_EQ(diverged.tensor(), "loss");
    EXPECT_EQ(bench.totals.step, 0);  // the update was not done
  }
}

TEST(TrainStage, ABadGradientIsNamed) {
  Bench bench(job_of("classification", ""));
  at::Tensor weight = bench.model->named_parameters()["body.weight"];
  weight.register_hook([](const at::Tensor& gradient) { return gradient * NAN; });
  try {
    bench.train();
    FAIL();
  } catch (const Diverged& diverged) {
    EXPECT_EQ(diverged.tensor(), "body.weight");
    EXPECT_TRUE(torch::isfinite(bench.flat()).all().item<bool>());
  }
}

TEST(TrainStage, ScratchAndPretrainedShareHeadInitAndDataOrder) {
  Bench scratch(job_of("classification", "")), pretrained(job_of("classification", "masked"), 1);
  EXPECT_TRUE(torch::equal(scratch.flat(), pretrained.flat()));
  const Sampler a(40, scratch.stage.rng().stream("order")), b(40, pretrained.stage.rng().stream("order"));
  EXPECT_TRUE(
      torch::equal(parts_of_step(scratch.setup(), a, 7).front().example_ids, parts_of_step(pretrained.setup(), b, 7).front().example_ids));
}

class Kinds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Doubles, Kinds, testing::Values("classification", "pairs", "regression", "sequence-to-sequence"));

TEST_P(Kinds, GoThroughTrainingAndEvaluation) {
  Bench bench(job_of(GetParam(), ""));
  bench.train();
  const Evaluation evaluation = evaluate({*bench.model, bench.stage.objective(), at::kCPU, 0, {}}, *bench.stage.task().validation,
                                         all_indices(70), Stream(1, "mask"));
  EXPECT_EQ(evaluation.metrics.front().name, "loss");
  EXPECT_TRUE(std::isfinite(evaluation.metrics.front().value));
  EXPECT_EQ(evaluation.scores.size(), 70u);
  EXPECT_TRUE(std::isfinite(metric_value(evaluation.metrics, bench.stage.objective().selection().name)));
}

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
  for (const auto& [kind, order] : std::vector<std::pair<std::string, std::string>>{{"classification", "shuffled"}, {"pairs", "shuffled"}, {"classification", "bucketed"}})
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
      const double expected = bench.stage.cost().expected_step(facts.train_lengths, bench.stage.objective(), facts.documents, bench.stage.spec().train);
      EXPECT_NEAR(executed / expected, 1.0, 0.01) << kind << " " << pretraining;
      EXPECT_NEAR(tokens / (16.0 * static_cast<double>(facts.documents) * mean_length(facts.train_lengths)), 1.0, 0.02) << kind << " " << pretraining;
    }
}

TEST(StageCost, PretrainingOnPairsPaysForBothDocuments) {
  for (const char* pretraining : {"masked", "causal"}) {
    Bench one(job_of("classification", pretraining)), two(job_of("pairs", pretraining));
    const std::vector<std::pair<int64_t, int64_t>> equal_rows = {{8, 1000}};
    const double single = one.stage.cost().expected_step(equal_rows, one.stage.objective(), 1, {.batch = 16});
    const double pairs = two.stage.cost().expected_step(equal_rows, two.stage.objective(), 2, {.batch = 16});
    const double fixed = 2 * single - one.stage.cost().expected_step(equal_rows, one.stage.objective(), 1, {.batch = 32});  // paid once a batch
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
