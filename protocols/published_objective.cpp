#include "protocols/published_objective.h"

#include <torch/torch.h>

#include "harness/base/error.h"
#include "protocols/losses.h"
#include "protocols/masking.h"

namespace spt::protocols::published {
namespace {

at::Tensor real_mask(const at::Tensor& lengths, int64_t length) { return torch::arange(length).unsqueeze(0) < lengths.unsqueeze(1); }

/// x shifted by one position to the left, `last` in the place that becomes free.
at::Tensor next_of(const at::Tensor& x, double last) { return torch::cat({x.slice(1, 1), torch::full_like(x.slice(1, 0, 1), last)}, 1); }

struct Counted {
  at::Tensor prediction, target;  ///< (n, 1)
};

Counted counted_numbers(const at::Tensor& prediction, const at::Tensor& target, double ignore) {
  const at::Tensor y = target.flatten();
  SPT_CHECK(prediction.numel() == y.numel(), "{} predictions for {} targets", prediction.numel(), y.numel());
  const at::Tensor at = y.ne(ignore).nonzero().squeeze(-1);
  return {prediction.flatten().index_select(0, at).unsqueeze(-1), y.index_select(0, at).unsqueeze(-1)};
}

Counted counted_classes(const at::Tensor& logits, const at::Tensor& target, int64_t ignore) {
  const at::Tensor y = target.flatten();
  const at::Tensor at = y.ne(ignore).nonzero().squeeze(-1);
  return {logits.reshape({-1, logits.size(-1)}).index_select(0, at), y.index_select(0, at)};
}

at::Tensor levels_of(const at::Tensor& image) { return grey_levels(image_values(image)).squeeze(-1); }

}  // namespace

Pair masked_tokens(const at::Tensor& tokens, const at::Tensor& lengths, const at::Tensor& mask, int64_t mask_id, int64_t ignore) {
  SPT_CHECK(mask_id == kMaskToken, "<mask> is id {}", kMaskToken);
  const at::Tensor hidden = mask.to(torch::kBool) & real_mask(lengths, tokens.size(1));
  return {hide_tokens(tokens, hidden), tokens.masked_fill(~hidden, ignore)};
}

Pair causal_tokens(const at::Tensor& tokens, const at::Tensor& lengths, int64_t ignore) {
  const at::Tensor has_next = real_mask(lengths - 1, tokens.size(1));
  return {tokens, next_of(tokens, static_cast<double>(ignore)).masked_fill(~has_next, ignore)};
}

Pair masked_values(const at::Tensor& x, const at::Tensor& mask, double ignore) {
  const at::Tensor hidden = mask.to(torch::kBool);
  const at::Tensor target = x.masked_fill(~hidden.unsqueeze(-1), ignore);
  return {hide_values(x, hidden), x.size(-1) == 1 ? target.squeeze(-1) : target};
}

Pair causal_values(const at::Tensor& x, double ignore, bool count_last) { return {x, next_of(x, count_last ? 0.0 : ignore)}; }

at::Tensor image_values(const at::Tensor& image) { return ((image.to(torch::kFloat32) / 255.0 - 0.5) / 0.5).reshape({1, -1, 1}); }

Pair masked_levels(const at::Tensor& image, const at::Tensor& mask, int64_t ignore) {
  const at::Tensor hidden = mask.to(torch::kBool);
  return {hide_values(image_values(image), hidden), levels_of(image).masked_fill(~hidden, ignore)};
}

Pair causal_levels(const at::Tensor& image, int64_t ignore) {
  return {image_values(image), next_of(levels_of(image), static_cast<double>(ignore))};
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target, int64_t ignore) {
  const Counted counted = counted_classes(logits, target, ignore);
  return cross_entropy_sum(counted.prediction, counted.target) / static_cast<double>(counted.target.size(0));
}

double accuracy(const at::Tensor& logits, const at::Tensor& target, int64_t ignore) {
  const Counted counted = counted_classes(logits, target, ignore);
  const int64_t n = counted.target.size(0);
  return 1.0 - static_cast<double>(n - correct_count(counted.prediction, counted.target)) / std::max(static_cast<double>(n), 1e-4);
}

at::Tensor masked_mae(const at::Tensor& prediction, const at::Tensor& target, double ignore) {
  const Counted counted = counted_numbers(prediction, target, ignore);
  return absolute_error_sum(counted.prediction, counted.target) / static_cast<double>(counted.target.size(0));
}

at::Tensor masked_mse(const at::Tensor& prediction, const at::Tensor& target, double ignore) {
  const Counted counted = counted_numbers(prediction, target, ignore);
  return squared_error_sum(counted.prediction, counted.target) / static_cast<double>(counted.target.size(0));
}

double masked_r2(const at::Tensor& prediction, const at::Tensor& target, double ignore) {
  const Counted counted = counted_numbers(prediction, target, ignore);
  RegressionSums sums;
  sums.add(counted.prediction.detach(), counted.target);
  return sums.r2();
}

}  // namespace spt::protocols::published
