#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spt::reports {

/// Coverage of every interval of a report, unadjusted for multiplicity.
inline constexpr double kConfidence = 0.95;

struct Interval {
  double low = 0;
  double high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

/// Arithmetic mean; NaN of nothing.
double mean(std::span<const double> values);

/// Sample standard deviation (n - 1); NaN for n < 2.
double standard_deviation(std::span<const double> values);

/// t with P(T <= t) = p for Student's t with `degrees` degrees of freedom. Errors: SPT_CHECK of 0 < p < 1, degrees >= 1.
double student_t_quantile(double p, double degrees);

/// z with P(Z <= z) = p for a standard normal. Errors: SPT_CHECK of 0 < p < 1.
double normal_quantile(double p);

struct MeanEstimate {
  size_t n = 0;
  double mean = 0;                   ///< NaN where n = 0
  double sd = 0;                     ///< NaN where n < 2
  std::optional<Interval> interval;  ///< Student t; none where n < 2
};

/// Mean with the interval mean +- t(n - 1) sd/sqrt(n), t the quantile of (1 + confidence)/2.
MeanEstimate estimate_mean(std::span<const double> values, double confidence = kConfidence);

/// The same of a[i] - b[i]. Errors: SPT_CHECK of equal sizes.
MeanEstimate estimate_paired_difference(std::span<const double> a, std::span<const double> b, double confidence = kConfidence);

/// Pearson correlation of pairs; none for fewer than 3 pairs or a side that does not vary.
std::optional<double> pair_correlation(std::span<const double> a, std::span<const double> b);

struct RatioEstimate {
  size_t n = 0;
  double ratio = 0;                  ///< mean(numerator)/mean(denominator); NaN where n = 0 or the denominator is 0
  std::optional<Interval> interval;  ///< none: undetermined, the interval of the denominator contains 0 (or n < 2)
  bool undetermined() const { return !interval; }
};

/// Fieller's interval of a ratio of paired means, with their covariance: all q for which the paired t test of
/// mean(numerator - q denominator) = 0 does not reject. It is bounded exactly where the denominator's own t interval excludes 0.
/// Errors: SPT_CHECK of equal sizes.
/// Source: E. C. Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16 (1954).
RatioEstimate fieller(std::span<const double> numerator, std::span<const double> denominator, double confidence = kConfidence);

/// 1 - ratio, interval turned round: the gap closed of a ratio of gaps.
RatioEstimate one_minus(const RatioEstimate& ratio);

/// Wilson's score interval of a share k/n; [0, 1] of nothing. Errors: SPT_CHECK of k <= n.
Interval wilson(size_t k, size_t n, double confidence = kConfidence);

/// Whether a metric is not clearly better than chance: m <= c + 3 sqrt(c (1 - c)/n_test) where higher is better and c is a rate. Where
/// lower is better, or c is no rate in [0, 1], a binomial error has no meaning: then m no better than c.
bool at_chance(double metric, double chance, int64_t n_test, bool higher_is_better);

/// What became of one planned seed. A divergence is an outcome of the method; whatever else failed says nothing about it and is to be run
/// again.
enum class SeedOutcome { kDone, kDiverged, kIncomplete };

/// One planned unit of replication: a seed, or the seeds that share a pretraining run.
struct SeedValue {
  SeedOutcome outcome = SeedOutcome::kIncomplete;
  double value = 0;  ///< done: what was measured; diverged: what stands for it (from the score of chance), NaN where that is unknown
};

struct SeedCounts {
  size_t planned = 0;
  size_t done = 0;
  size_t diverged = 0;
  size_t incomplete() const { return planned - done - diverged; }
  bool complete() const { return done == planned && planned > 0; }
};

/// A mean over every planned seed.
struct SeedSummary {
  SeedCounts counts;
  MeanEstimate survivors;               ///< over the seeds that are done; a headline only if all are
  std::optional<MeanEstimate> imputed;  ///< with what stands for diverged seeds; none if incomplete, or if that is unknown
};

/// Errors: SPT_CHECK that a done value is not NaN (such a job is a failure, never a value).
SeedSummary summarise_seeds(std::span<const SeedValue> seeds);

/// A ratio of two means over every planned seed; the fields as in SeedSummary.
struct SeedRatio {
  SeedCounts counts;
  RatioEstimate survivors;
  std::optional<RatioEstimate> imputed;
};

/// Seed i of both has one outcome. Errors: SPT_CHECK of equal sizes and outcomes, and as summarise_seeds.
SeedRatio summarise_ratio(std::span<const SeedValue> numerator, std::span<const SeedValue> denominator);

}  // namespace spt::reports
