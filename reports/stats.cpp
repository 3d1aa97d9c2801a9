#include "reports/stats.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "harness/base/error.h"

namespace spt::reports {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Sum of (a - mean a)(b - mean b); two passes, since a gap of .01 stands on values near 1.
double sum_of_products(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum;
}

SeedCounts count_outcomes(std::span<const SeedValue> seeds) {
  SeedCounts counts{seeds.size(), 0, 0};
  for (const SeedValue& seed : seeds) {
    counts.done += seed.outcome == SeedOutcome::kDone;
    counts.diverged += seed.outcome == SeedOutcome::kDiverged;
  }
  return counts;
}

std::vector<double> values_of(std::span<const SeedValue> seeds, bool with_diverged) {
  std::vector<double> values;
  for (const SeedValue& seed : seeds) {
    if (seed.outcome == SeedOutcome::kDone) SPT_CHECK(!std::isnan(seed.value), "a seed is done with NaN");
    if (seed.outcome == SeedOutcome::kDone || (with_diverged && seed.outcome == SeedOutcome::kDiverged)) values.push_back(seed.value);
  }
  return values;
}

bool can_impute(std::span<const SeedValue> seeds) {
  return std::all_of(seeds.begin(), seeds.end(),
                     [](const SeedValue& seed) { return seed.outcome != SeedOutcome::kIncomplete && !std::isnan(seed.value); });
}

}  // namespace

double mean(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? kNan : sum / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return kNan;
  return std::sqrt(sum_of_products(values, values) / static_cast<double>(values.size() - 1));
}

double student_t_quantile(double p, double degrees) {
  SPT_CHECK(p > 0 && p < 1 && degrees >= 1, "p {}, degrees {}", p, degrees);
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

double normal_quantile(double p) {
  SPT_CHECK(p > 0 && p < 1, "p {}", p);
  return boost::math::quantile(boost::math::normal(), p);
}

MeanEstimate estimate_mean(std::span<const double> values, double confidence) {
  MeanEstimate estimate{values.size(), mean(values), standard_deviation(values), std::nullopt};
  if (values.size() < 2) return estimate;
  const double n = static_cast<double>(values.size());
  const double half = student_t_quantile((1 + confidence) / 2, n - 1) * estimate.sd / std::sqrt(n);
  estimate.interval = Interval{estimate.mean - half, estimate.mean + half};
  return estimate;
}

MeanEstimate estimate_paired_difference(std::span<const double> a, std::span<const double> b, double confidence) {
  SPT_CHECK(a.size() == b.size(), "{} and {} values are no pairs", a.size(), b.size());
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  return estimate_mean(differences, confidence);
}

std::optional<double> pair_correlation(std::span<const double> a, std::span<const double> b) {
  SPT_CHECK(a.size() == b.size(), "{} and {} values are no pairs", a.size(), b.size());
  if (a.size() < 3) return std::nullopt;
  const double scale = std::sqrt(sum_of_products(a, a)) * std::sqrt(sum_of_products(b, b));
  if (!(scale > 0)) return std::nullopt;
  return std::clamp(sum_of_products(a, b) / scale, -1.0, 1.0);
}

RatioEstimate fieller(std::span<const double> numerator, std::span<const double> denominator, double confidence) {
  SPT_CHECK(numerator.size() == denominator.size(), "{} and {} values are no pairs", numerator.size(), denominator.size());
  const double a = mean(numerator), b = mean(denominator);
  RatioEstimate estimate{numerator.size(), b == 0 ? kNan : a / b, std::nullopt};
  if (numerator.size() < 2) return estimate;
  const double n = static_cast<double>(numerator.size());
  const double t = student_t_quantile((1 + confidence) / 2, n - 1);
  const double scale = t * t / (n * (n - 1));  // t^2 times the variances and the covariance of the two means
  const double aa = scale * sum_of_products(numerator, numerator);
  const double bb = scale * sum_of_products(denominator, denominator);
  const double ab = scale * sum_of_products(numerator, denominator);
  // The q with (a - q b)^2 <= t^2 var(a - q b), that is: square q^2 - 2 linear q + constant <= 0.
  const double square = b * b - bb, linear = a * b - ab, constant = a * a - aa;
  if (!(square > 0)) return estimate;
  const double root = std::sqrt(std::max(0.0, linear * linear - square * constant));  // q = a/b satisfies it, so the roots are real
  estimate.interval = Interval{(linear - root) / square, (linear + root) / square};
  return estimate;
}

RatioEstimate one_minus(const RatioEstimate& ratio) {
  RatioEstimate result{ratio.n, 1 - ratio.ratio, std::nullopt};
  if (ratio.interval) result.interval = Interval{1 - ratio.interval->high, 1 - ratio.interval->low};
  return result;
}

Interval wilson(size_t k, size_t n, double confidence) {
  SPT_CHECK(k <= n, "{} of {}", k, n);
  if (n == 0) return {0, 1};
  const double z = normal_quantile((1 + confidence) / 2), size = static_cast<double>(n), share = static_cast<double>(k) / size;
  const double centre = share + z * z / (2 * size);
  const double half = z * std::sqrt(share * (1 - share) / size + z * z / (4 * size * size));
  const double scale = 1 + z * z / size;
  // At k = 0 and k = n the ends are exactly 0 and 1, which rounding would miss.
  return {k == 0 ? 0 : (centre - half) / scale, k == n ? 1 : (centre + half) / scale};
}

bool at_chance(double metric, double chance, int64_t n_test, bool higher_is_better) {
  if (!higher_is_better) return !(metric < chance);
  const bool rate = chance >= 0 && chance <= 1 && n_test > 0;
  const double error = rate ? std::sqrt(chance * (1 - chance) / static_cast<double>(n_test)) : 0;
  return !(metric > chance + 3 * error);
}

SeedSummary summarise_seeds(std::span<const SeedValue> seeds) {
  SeedSummary summary{count_outcomes(seeds), estimate_mean(values_of(seeds, false)), std::nullopt};
  if (can_impute(seeds)) summary.imputed = estimate_mean(values_of(seeds, true));
  return summary;
}

SeedRatio summarise_ratio(std::span<const SeedValue> numerator, std::span<const SeedValue> denominator) {
  SPT_CHECK(numerator.size() == denominator.size(), "{} and {} values are no pairs", numerator.size(), denominator.size());
  for (size_t i = 0; i < numerator.size(); ++i) SPT_CHECK(numerator[i].outcome == denominator[i].outcome, "pair {} has two outcomes", i);
  SeedRatio ratio{count_outcomes(numerator), fieller(values_of(numerator, false), values_of(denominator, false)), std::nullopt};
  if (can_impute(numerator) && can_impute(denominator)) ratio.imputed = fieller(values_of(numerator, true), values_of(denominator, true));
  return ratio;
}

}  // namespace spt::reports
