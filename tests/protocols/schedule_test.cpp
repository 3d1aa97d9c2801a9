#include "protocols/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

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
  EXPECT_DOUBLE_EQ(schedule_factor("cosine", 0, 100, 10), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor("cosine", 9, 100, 10), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor("cosine", 10, 100, 10), 1.0);
  EXPECT_NEAR(schedule_factor("cosine", 55, 100, 10), 0.5, 1e-15);
  EXPECT_NEAR(schedule_factor("cosine", 99, 100, 10), 0.5 * (1 + std::cos(M_PI * 89.0 / 90.0)), 1e-15);
  EXPECT_GT(schedule_factor("cosine", 99, 100, 10), 0);
}

TEST(Schedule, ConstantStaysAtOneAfterWarmUp) {
  EXPECT_DOUBLE_EQ(schedule_factor("constant", 1, 100, 4), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor("constant", 99, 100, 4), 1.0);
}

TEST(Schedule, PublishedWarmUpStartsAtZero) {
  EXPECT_DOUBLE_EQ(schedule_factor("constant_warmup", 0, 10, 4), 0.0);
  EXPECT_DOUBLE_EQ(schedule_factor("constant_warmup", 3, 10, 4), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor("constant_warmup", 4, 10, 4), 1.0);
}

TEST(Schedule, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    schedule_factor("cosin", 0, 10, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'cosine'"), std::string::npos) << error.what();
  }
}

TEST(Schedule, AStageOfOneStepIsAllWarmUp) {
  EXPECT_DOUBLE_EQ(schedule_factor("cosine", 0, 1, warmup_steps(0.1, 1)), 1.0);
}

}  // namespace
}  // namespace spt::protocols
