#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace spt::protocols::published {

// The published tensor form of the objectives: whole (B, L) targets in which an ignored value marks what is not counted. The project's own
// objectives work on counted positions alone (objective.h); both share their masking and losses, so that what the reference cases pin down
// is what runs. Source: IdoAmos/not-from-scratch@f919137 src/dataloaders/base.py, lra.py, src/tasks/metrics.py.

inline constexpr int64_t kIgnoredClass = -100;
inline constexpr double kIgnoredValue = -10000.0;

struct Pair {
  at::Tensor network_input;
  at::Tensor target;
};

/// tokens, mask (B, L), lengths (B): hidden ids become `mask_id`; target is the id where hidden and real, else `ignore`.
Pair masked_tokens(const at::Tensor& tokens, const at::Tensor& lengths, const at::Tensor& mask, int64_t mask_id, int64_t ignore);
/// Input unchanged; target is the next id, `ignore` at the last real position and at pads.
Pair causal_tokens(const at::Tensor& tokens, const at::Tensor& lengths, int64_t ignore);
/// x (B, L, c), mask (B, L): input (B, L, c + 1); target (B, L) for one channel, (B, L, c) for more.
Pair masked_values(const at::Tensor& x, const at::Tensor& mask, double ignore);
/// Input unchanged; target (B, L, c) is the next element; the last one is `ignore`, or with `count_last` (a published slip) 0 and counted.
Pair causal_values(const at::Tensor& x, double ignore, bool count_last = false);
/// Grey image (H, W) uint8, row by row -> (1, HW, 1) float32 as (p/255 - 0.5)/0.5.
at::Tensor image_values(const at::Tensor& image);
/// Classes of 256 levels: input as masked_values and causal_values of the image, target (1, HW) the level or `ignore`.
Pair masked_levels(const at::Tensor& image, const at::Tensor& mask, int64_t ignore);
Pair causal_levels(const at::Tensor& image, int64_t ignore);

/// Mean over counted targets; NaN if there is none. logits (..., C), target (...).
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target, int64_t ignore = kIgnoredClass);
/// 1 - wrong / max(counted, 1e-4).
double accuracy(const at::Tensor& logits, const at::Tensor& target, int64_t ignore = kIgnoredClass);
/// Mean absolute error over counted numbers.
at::Tensor masked_mae(const at::Tensor& prediction, const at::Tensor& target, double ignore = kIgnoredValue);
/// Mean squared error over counted numbers.
at::Tensor masked_mse(const at::Tensor& prediction, const at::Tensor& target, double ignore = kIgnoredValue);
/// 1 - MSE / max(population variance of the counted targets, 1e-5), all channels together.
double masked_r2(const at::Tensor& prediction, const at::Tensor& target, double ignore = kIgnoredValue);

}  // namespace spt::protocols::published
