#include "reports/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "harness/base/error.h"
#include "harness/base/rng.h"

// Numbers without a comment of their own are printed by stats_reference.py beside this file (numpy and scipy).
namespace spt::reports {
namespace {

const std::vector<double> kA = {0.612, 0.655, 0.631, 0.598, 0.644};
const std::vector<double> kB = {0.581, 0.640, 0.602, 0.590, 0.601};

double normal_draw(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

std::vector<double> normal_draws(SplitMix64& random, size_t n, double mean, double sd) {
  std::vector<double> values(n);
  for (double& value : values) value = mean + sd * normal_draw(random);
  return values;
}

TEST(Stats, QuantilesMatchScipy) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062047362, 1e-9);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.7764451052, 1e-9);
  EXPECT_NEAR(student_t_quantile(0.95, 9), 1.83311293266, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);  // standard tables
}

TEST(Stats, MeanIntervalMatchesScipy) {
  const MeanEstimate estimate = estimate_mean(kA);
  EXPECT_EQ(estimate.n, 5u);
  EXPECT_NEAR(estimate.mean, 0.628, 1e-12);
  EXPECT_NEAR(estimate.sd, 0.0231840462387, 1e-12);
  ASSERT_TRUE(estimate.interval);
  EXPECT_NEAR(estimate.interval->low, 0.599213204453, 1e-11);
  EXPECT_NEAR(estimate.interval->high, 0.656786795547, 1e-11);
}

TEST(Stats, PairedDifferenceMatchesScipy) {
  const MeanEstimate estimate = estimate_paired_difference(kA, kB);
  EXPECT_NEAR(estimate.mean, 0.0252, 1e-12);
  ASSERT_TRUE(estimate.interval);
  EXPECT_NEAR(estimate.interval->low, 0.00803088012087, 1e-11);
  EXPECT_NEAR(estimate.interval->high, 0.0423691198791, 1e-11);
  EXPECT_NEAR(pair_correlation(kA, kB).value(), 0.81724890821, 1e-10);
}

TEST(Stats, FewValuesHaveNoInterval) {
  EXPECT_TRUE(std::isnan(estimate_mean({}).mean));
  const std::vector<double> one = {0.5}, two = {0.5, 0.7};
  EXPECT_EQ(estimate_mean(one).mean, 0.5);
  EXPECT_FALSE(estimate_mean(one).interval);
  EXPECT_TRUE(std::isnan(estimate_mean(one).sd));
  EXPECT_TRUE(estimate_mean(two).interval);
  EXPECT_TRUE(fieller(one, one).undetermined());
  EXPECT_FALSE(pair_correlation(two, two));
  const std::vector<double> flat = {1, 1, 1}, rising = {1, 2, 3};
  EXPECT_FALSE(pair_correlation(flat, rising));
  EXPECT_THROW(estimate_paired_difference(one, two), std::exception);
}

TEST(Stats, EqualValuesHaveAnIntervalOfNoWidth) {
  const std::vector<double> flat = {0.25, 0.25, 0.25}, doubled = {0.5, 0.5, 0.5};
  EXPECT_EQ(estimate_mean(flat).interval->low, 0.25);
  EXPECT_EQ(estimate_mean(flat).interval->high, 0.25);
  const RatioEstimate ratio = fieller(flat, doubled);
  ASSERT_TRUE(ratio.interval);
  EXPECT_EQ(ratio.interval->low, 0.5);
  EXPECT_EQ(ratio.interval->high, 0.5);
}

TEST(Fieller, MatchesRootFindingOnThePairedTest) {
  const std::vector<double> numerator = {0.021, 0.034, 0.017, 0.029, 0.024}, denominator = {0.051, 0.060, 0.039, 0.055, 0.047};
  const RatioEstimate ratio = fieller(numerator, denominator);
  EXPECT_NEAR(ratio.ratio, 0.496031746032, 1e-11);
  ASSERT_TRUE(ratio.interval);
  EXPECT_NEAR(ratio.interval->low, 0.399578585319, 1e-10);
  EXPECT_NEAR(ratio.interval->high, 0.570255928674, 1e-10);
  const RatioEstimate closed = one_minus(ratio);
  EXPECT_NEAR(closed.ratio, 0.503968253968, 1e-11);
  EXPECT_NEAR(closed.interval->low, 1 - 0.570255928674, 1e-10);
  EXPECT_NEAR(closed.interval->high, 1 - 0.399578585319, 1e-10);
}

TEST(Fieller, IsUndeterminedExactlyWhereTheDenominatorsIntervalContainsZero) {
  const std::vector<double> numerator = {0.021, 0.034, 0.017, 0.029, 0.024}, weak = {0.03, -0.02, 0.05, -0.01, 0.02};
  EXPECT_NEAR(estimate_mean(weak).interval->low, -0.0217719928447, 1e-11);
  EXPECT_TRUE(fieller(numerator, weak).undetermined());
  SplitMix64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const auto a = normal_draws(random, 5, 1, 1), b = normal_draws(random, 5, 1, 1);
    EXPECT_EQ(fieller(a, b).undetermined(), estimate_mean(b).interval->contains(0));
  }
}

TEST(Fieller, DoesNotDependOnScaleOrSign) {
  const std::vector<double> numerator = {2, 3, 4}, denominator = {-10, -11, -9};
  std::vector<double> tiny, flipped;
  for (double value : numerator) tiny.push_back(value * 1e-9);
  for (double value : denominator) flipped.push_back(-value * 1e-9);
  const RatioEstimate ratio = fieller(numerator, denominator), scaled = fieller(tiny, flipped);
  EXPECT_NEAR(ratio.interval->low, -scaled.interval->high, 1e-9);
  EXPECT_NEAR(ratio.interval->high, -scaled.interval->low, 1e-9);
}

// Gaps 20 and 30, sd 1, as in the project's simulation: .95 at n = 3. The standard error of 8,000 rounds is .0024.
TEST(FiellerSimulation, CoversNinetyFivePercentOfALargeGap) {
  SplitMix64 random(11);
  int covered = 0;
  constexpr int kRounds = 8000;
  for (int round = 0; round < kRounds; ++round) {
    const auto scratch = normal_draws(random, 3, 0, 0.5);  // shared by both, so they are correlated
    auto a = normal_draws(random, 3, 20, 1), b = normal_draws(random, 3, 30, 1);
    for (size_t i = 0; i < 3; ++i) a[i] -= scratch[i], b[i] -= scratch[i];
    const RatioEstimate ratio = fieller(a, b);
    covered += ratio.interval && ratio.interval->contains(20.0 / 30);
  }
  EXPECT_NEAR(static_cast<double>(covered) / kRounds, 0.95, 0.0075);
}

// P(|noncentral t| < t critical) for mean .6 or 3 and sd sqrt 2 or 1, by scipy.stats.nct.
TEST(FiellerSimulation, IsUndeterminedAsOftenAsTheNoncentralTSays) {
  const auto share = [](size_t n, double gap, double sd) {
    SplitMix64 random(13);
    int undetermined = 0;
    for (int round = 0; round < 8000; ++round) {
      const auto a = normal_draws(random, n, gap * 2 / 3, sd), b = normal_draws(random, n, gap, sd);
      undetermined += fieller(a, b).undetermined();
    }
    return undetermined / 8000.0;
  };
  EXPECT_NEAR(share(3, 3, std::numbers::sqrt2), 0.4919, 0.017);
  EXPECT_NEAR(share(5, 3, std::numbers::sqrt2), 0.0643, 0.017);
  EXPECT_NEAR(share(10, 0.6, std::numbers::sqrt2), 0.7751, 0.017);
}

TEST(MeanSimulation, StudentTCoversNinetyFivePercentAtSmallN) {
  for (size_t n : {2, 3, 5, 10}) {
    SplitMix64 random(17 + n);
    int covered = 0;
    for (int round = 0; round < 8000; ++round) covered += estimate_mean(normal_draws(random, n, 0.7, 0.02)).interval->contains(0.7);
    EXPECT_NEAR(covered / 8000.0, 0.95, 0.0075) << n;
  }
}

TEST(Wilson, MatchesScipy) {
  EXPECT_EQ(wilson(0, 5).low, 0);
  EXPECT_NEAR(wilson(0, 5).high, 0.434482464783, 1e-11);
  EXPECT_NEAR(wilson(2, 5).low, 0.117620774233, 1e-11);
  EXPECT_NEAR(wilson(2, 5).high, 0.769275718724, 1e-11);
  EXPECT_NEAR(wilson(5, 5).low, 0.565517535217, 1e-11);
  EXPECT_EQ(wilson(5, 5).high, 1);
  EXPECT_NEAR(wilson(17, 40).low, 0.2850939256, 1e-10);
  EXPECT_NEAR(wilson(17, 40).high, 0.57804931458, 1e-10);
  EXPECT_EQ(wilson(0, 0).low, 0);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(AtChance, IsWithinThreeBinomialErrorsOfTheMajorityRate) {
  // c = .1, n = 10,000: 3 sqrt(.1 x .9/10000) = .009
  EXPECT_TRUE(at_chance(0.1, 0.1, 10000, true));
  EXPECT_TRUE(at_chance(0.1089, 0.1, 10000, true));
  EXPECT_FALSE(at_chance(0.1091, 0.1, 10000, true));
  EXPECT_TRUE(at_chance(0.02, 0.1, 10000, true));  // worse than chance stands no better
  EXPECT_TRUE(at_chance(std::nan(""), 0.1, 10000, true));
}

TEST(AtChance, ComparesErrorsAndUnboundedMetricsWithTheTrivialBaseline) {
  EXPECT_TRUE(at_chance(0.0, 0.0, 500, true));  // R2 of the mean predictor
  EXPECT_FALSE(at_chance(0.01, 0.0, 500, true));
  EXPECT_TRUE(at_chance(2.1, 2.0, 500, false));  // squared error
  EXPECT_FALSE(at_chance(1.9, 2.0, 500, false));
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TEST(SeedSummary, CountsEverySeedAndImputesDivergedOnesAtChance) {
  const std::vector<SeedValue> seeds = {{SeedOutcome::kDone, 0.6}, {SeedOutcome::kDiverged, 0.1}, {SeedOutcome::kDone, 0.8}};
  const SeedSummary summary = summarise_seeds(seeds);
  EXPECT_EQ(summary.counts.planned, 3u);
  EXPECT_EQ(summary.counts.diverged, 1u);
  EXPECT_EQ(summary.counts.incomplete(), 0u);
  EXPECT_FALSE(summary.counts.complete());
  EXPECT_NEAR(summary.survivors.mean, 0.7, 1e-12);
  ASSERT_TRUE(summary.imputed);
  EXPECT_EQ(summary.imputed->n, 3u);
  EXPECT_NEAR(summary.imputed->mean, 0.5, 1e-12);
}

TEST(SeedSummary, ImputesNothingThatIsUnknown) {
  EXPECT_FALSE(summarise_seeds(std::vector<SeedValue>{{SeedOutcome::kDone, 0.6}, {SeedOutcome::kDiverged, kUnknown}}).imputed);
  EXPECT_FALSE(summarise_seeds({}).counts.complete());
  EXPECT_THROW(summarise_seeds(std::vector<SeedValue>{{SeedOutcome::kDone, kUnknown}}), std::exception);
}

TEST(SeedSummary, OtherFailuresLeaveTheCellIncomplete) {
  const std::vector<SeedValue> seeds = {{SeedOutcome::kDone, 0.6}, {SeedOutcome::kIncomplete, 0}, {SeedOutcome::kDiverged, 0.1}};
  const SeedSummary summary = summarise_seeds(seeds);
  EXPECT_EQ(summary.counts.incomplete(), 1u);
  EXPECT_FALSE(summary.counts.complete());
  EXPECT_FALSE(summary.imputed);
  EXPECT_EQ(summary.survivors.n, 1u);
}

TEST(SeedRatio, PairsSeedsOfOneOutcome) {
  const std::vector<SeedValue> a = {{SeedOutcome::kDone, 1}, {SeedOutcome::kDiverged, 4}, {SeedOutcome::kDone, 2}, {SeedOutcome::kDone, 3}};
  std::vector<SeedValue> b = {{SeedOutcome::kDone, 10}, {SeedOutcome::kDiverged, 10}, {SeedOutcome::kDone, 11}, {SeedOutcome::kDone, 9}};
  const SeedRatio ratio = summarise_ratio(a, b);
  EXPECT_NEAR(ratio.survivors.ratio, 0.2, 1e-12);
  EXPECT_EQ(ratio.survivors.n, 3u);
  ASSERT_TRUE(ratio.imputed);
  EXPECT_NEAR(ratio.imputed->ratio, 0.25, 1e-12);
  b[1].outcome = SeedOutcome::kDone;
  EXPECT_THROW(summarise_ratio(a, b), std::exception);
}

}  // namespace
}  // namespace spt::reports
