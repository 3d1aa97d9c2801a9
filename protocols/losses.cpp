#include "protocols/losses.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

double per_number(double sum, int64_t count) {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(logits, target, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
}

at::Tensor absolute_error_sum(const at::Tensor& prediction, const at::Tensor& target) {
  return (prediction - target).abs().sum() / static_cast<double>(prediction.size(-1));
}

at::Tensor squared_error_sum(const at::Tensor& prediction, const at::Tensor& target) {
  return (prediction - target).square().sum() / static_cast<double>(prediction.size(-1));
}

int64_t correct_count(const at::Tensor& logits, const at::Tensor& target) { return logits.argmax(-1).eq(target).sum().item<int64_t>(); }

void RegressionSums::add(const at::Tensor& prediction, const at::Tensor& target) {
  const int64_t n = target.numel();
  SPT_CHECK(prediction.numel() == n, "{} predictions for {} targets", prediction.numel(), n);
  if (n == 0) return;
  const at::Tensor y = target.to(torch::kFloat64).flatten();
  const at::Tensor error = prediction.to(torch::kFloat64).flatten() - y;
  squared_ += error.square().sum().item<double>();
  absolute_ += error.abs().sum().item<double>();
  const double mean = y.mean().item<double>();
  const double spread = (y - mean).square().sum().item<double>();
  const double total = static_cast<double>(count_ + n);
  const double shift = mean - mean_;
  spread_ += spread + shift * shift * static_cast<double>(count_) * static_cast<double>(n) / total;
  mean_ += shift * static_cast<double>(n) / total;
  count_ += n;
}

double RegressionSums::mse() const { return per_number(squared_, count_); }
double RegressionSums::mae() const { return per_number(absolute_, count_); }
double RegressionSums::r2() const { return 1.0 - mse() / std::max(per_number(spread_, count_), 1e-5); }

}  // namespace spt::protocols
