#include "harness/worker/train.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/worker/evaluate.h"
#include "tests/worker/bench.h"

namespace spt::worker {
namespace {

using test::Bench;
using test::job_of;

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
  with.train(
      1, [&] { evaluate({*with.model, with.stage.objective(), at::kCPU, 1, {}}, *with.stage.task().validation, all_indices(70), mask); });
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

}  // namespace
}  // namespace spt::worker
