#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace spt::protocols {

// Losses are sums, so that parts of a batch add up to it. Entries of `target` equal to an ignored value are not counted by the published
// forms (published_objective.h); here everything given is counted.

/// sum_i -log softmax(logits_i)[target_i]; logits (n, C), target (n) int64 -> scalar.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target);

/// sum over rows of the mean over columns of |prediction - target|; both (n, c) -> scalar.
at::Tensor absolute_error_sum(const at::Tensor& prediction, const at::Tensor& target);

/// sum over rows of the mean over columns of (prediction - target)^2; both (n, c) -> scalar.
at::Tensor squared_error_sum(const at::Tensor& prediction, const at::Tensor& target);

/// Number of rows whose largest logit is the target.
int64_t correct_count(const at::Tensor& logits, const at::Tensor& target);

/// MSE, MAE and R2 = 1 - MSE / max(var(y), 1e-5), var the population variance, over all numbers that were added.
/// Batches are merged by Chan's formula, so the result does not depend on how a split was cut (to rounding), nor on a large mean.
class RegressionSums {
 public:
  void add(const at::Tensor& prediction, const at::Tensor& target);  ///< same number of elements, any shape
  int64_t count() const { return count_; }
  double mse() const;
  double mae() const;
  double r2() const;

 private:
  int64_t count_ = 0;
  double squared_ = 0, absolute_ = 0;
  double mean_ = 0, spread_ = 0;  ///< of the targets: mean and sum of squared deviations
};

}  // namespace spt::protocols
