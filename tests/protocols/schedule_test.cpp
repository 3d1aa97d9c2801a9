#include "protocols/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

double factor(const std::string& name, int64_t step, int64_t steps, int64_t warmup) {
  return schedule_factor({.name = name, .steps = steps, .warmup = warmup}, step);
}

TEST(Schedule, WarmUpIsTheCeilingOfTheShareAndAtLeastOne) {
  EXPECT_EQ(warmup_steps(0.1, 400), 40);
  EXPECT_EQ(warmup_steps(0.1, 401), 41);
  EXPECT_EQ(warmup_steps(0.1, 30), 3);
  EXPECT_EQ(warmup_steps(0.1, 70), 7);
  EXPECT_EQ(warmup_steps(0.1, 5), 1);
  EXPECT_EQ(warmup_steps(0.0, 400), 1);
  EXPECT_EQ(warmup_steps(1.0, 7), 7);
}

TEST(Schedule, WarmUpOfATenthIsExactForEveryNumberOfSteps) {
  for (int64_t steps = 1; steps <= 20000; ++steps) ASSERT_EQ(warmup_steps(0.1, steps), (steps + 9) / 10) << steps;
}

TEST(Schedule, CosineRisesFromOneOverWAndFallsToAlmostZero) {
  EXPECT_DOUBLE_EQ(factor("cosine", 0, 100, 10), 0.1);
  EXPECT_DOUBLE_EQ(factor("cosine", 9, 100, 10), 1.0);
  EXPECT_DOUBLE_EQ(factor("cosine", 10, 100, 10), 1.0);
  EXPECT_NEAR(factor("cosine", 55, 100, 10), 0.5, 1e-15);
  EXPECT_NEAR(factor("cosine", 99, 100, 10), 0.5 * (1 + std::cos(M_PI * 89.0 / 90.0)), 1e-15);
  EXPECT_GT(factor("cosine", 99, 100, 10), 0);
}

TEST(Schedule, ConstantStaysAtOneAfterWarmUp) {
  EXPECT_DOUBLE_EQ(factor("constant", 1, 100, 4), 0.5);
  EXPECT_DOUBLE_EQ(factor("constant", 99, 100, 4), 1.0);
}

TEST(Schedule, PublishedWarmUpStartsAtZero) {
  EXPECT_DOUBLE_EQ(factor("constant_warmup", 0, 10, 4), 0.0);
  EXPECT_DOUBLE_EQ(factor("constant_warmup", 3, 10, 4), 0.75);
  EXPECT_DOUBLE_EQ(factor("constant_warmup", 4, 10, 4), 1.0);
}

TEST(Schedule, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    factor("cosin", 0, 10, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'cosine'"), std::string::npos) << error.what();
  }
}

TEST(Schedule, AStageOfOneStepIsAllWarmUp) { EXPECT_DOUBLE_EQ(factor("cosine", 0, 1, warmup_steps(0.1, 1)), 1.0); }

TEST(Schedule, LinearFallsToOneStepAboveZero) {
  EXPECT_DOUBLE_EQ(factor("linear", 3, 100, 4), 1.0);
  EXPECT_DOUBLE_EQ(factor("linear", 4, 100, 4), 1.0);
  EXPECT_DOUBLE_EQ(factor("linear", 52, 100, 4), 0.5);
  EXPECT_DOUBLE_EQ(factor("linear", 99, 100, 4), 1.0 / 96);
}

TEST(Schedule, InverseSquareRootPeaksAtTheEndOfItsWarmUp) {
  EXPECT_DOUBLE_EQ(factor("inverse_sqrt", 0, 100, 4), 0.25);
  EXPECT_DOUBLE_EQ(factor("inverse_sqrt", 3, 100, 4), 1.0);
  EXPECT_DOUBLE_EQ(factor("inverse_sqrt", 4, 100, 4), std::sqrt(4.0 / 5.0));
  EXPECT_DOUBLE_EQ(factor("inverse_sqrt", 99, 100, 4), 0.2);
  EXPECT_DOUBLE_EQ(factor("inverse_sqrt", 3, 100, 0), 0.5);
}

TEST(Schedule, StepAndMultistepDropAtTheirSteps) {
  const Schedule every{.name = "step", .steps = 100, .warmup = 1, .gamma = 0.5, .step_size = 10};
  EXPECT_DOUBLE_EQ(schedule_factor(every, 9), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(every, 10), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(every, 35), 0.125);
  const Schedule at{.name = "multistep", .steps = 100, .warmup = 4, .gamma = 0.1, .milestones = {50, 2, 80}};
  EXPECT_DOUBLE_EQ(schedule_factor(at, 1), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(at, 2), 0.075);
  EXPECT_DOUBLE_EQ(schedule_factor(at, 49), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(at, 50), 0.1 * 0.1);
}

TEST(Schedule, PastTheEndOursStayAndThePublishedCosineRisesAgain) {
  EXPECT_DOUBLE_EQ(factor("cosine", 150, 100, 10), 0.0);
  EXPECT_DOUBLE_EQ(factor("linear", 150, 100, 10), 0.0);
  EXPECT_DOUBLE_EQ(factor("linear_warmup", 150, 100, 10), 0.0);
  EXPECT_NEAR(factor("cosine_warmup", 190, 100, 10), 1.0, 1e-15);
}

TEST(Schedule, EveryPublishedOneBeginsAtZeroAndEveryOtherAboveIt) {
  for (const std::string& name : schedule_names()) EXPECT_EQ(factor(name, 0, 40, 4) == 0, name.ends_with("_warmup")) << name;
  EXPECT_TRUE(std::is_sorted(schedule_names().begin(), schedule_names().end()));
}

TEST(Schedule, PlateauDropsAfterMoreThanPatienceEvaluationsWithoutABetterOne) {
  const Schedule up{.name = "plateau", .gamma = 0.5, .patience = 1, .higher_is_better = true, .lr = 0.1};
  EXPECT_DOUBLE_EQ(plateau_rate(up, {}), 0.1);
  EXPECT_DOUBLE_EQ(plateau_rate(up, std::vector<double>{0.5, 0.5}), 0.1);
  EXPECT_DOUBLE_EQ(plateau_rate(up, std::vector<double>{0.5, 0.5, 0.50004}), 0.05) << "not 1e-4 better";
  EXPECT_DOUBLE_EQ(plateau_rate(up, std::vector<double>{0.5, 0.5, 0.6, 0.6, 0.5}), 0.05);
  EXPECT_DOUBLE_EQ(plateau_rate(up, std::vector<double>{0.5, NAN, NAN}), 0.05);
  EXPECT_DOUBLE_EQ(plateau_rate(up, std::vector<double>{NAN, 0.1, NAN}), 0.1);
  Schedule down = up;
  down.higher_is_better = false;
  EXPECT_DOUBLE_EQ(plateau_rate(down, std::vector<double>{0.5, 0.4, 0.3, 0.2}), 0.1);
  EXPECT_DOUBLE_EQ(plateau_rate(down, std::vector<double>{0.5, 0.6, 0.7, 0.8, 0.9}), 0.025);
}

TEST(Schedule, PlateauMakesNoChangeBelowOneHundredMillionth) {
  const Schedule down{.name = "plateau", .gamma = 0.5, .patience = 0, .lr = 3e-8};
  EXPECT_DOUBLE_EQ(plateau_rate(down, std::vector<double>{1, 1}), 1.5e-8);
  EXPECT_DOUBLE_EQ(plateau_rate(down, std::vector<double>{1, 1, 1, 1}), 1.5e-8);
}

TEST(Schedule, PlateauIsAFactorOfTheWarmUpAndAFunctionOfTheListAlone) {
  const Schedule schedule{.name = "plateau", .steps = 100, .warmup = 10, .gamma = 0.2, .patience = 0, .lr = 0.01};
  const std::vector<double> worse = {1, 2};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, 50), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, 50, worse), 0.2);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, 4, worse), 0.1);
}

}  // namespace
}  // namespace spt::protocols
