#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "harness/base/rng.h"

namespace spt::protocols {

inline constexpr int64_t kMaskToken = 0;  ///< id of <mask> in every vocabulary
inline constexpr int64_t kPadToken = 1;   ///< id of <pad>

/// What is hidden: (rows, L) bool; each real position of row r by itself with probability `ratio`, pads never.
/// Row r holds document r / B of example r mod B, B = example_ids.size(); lengths (rows) int64 or undefined (all real).
/// Random: mask stream, a function of (epochs[example], example id, document) alone.
at::Tensor draw_mask(const at::Tensor& lengths, const at::Tensor& example_ids, std::span<const uint64_t> epochs, const Stream& mask,
                     double ratio, int64_t rows, int64_t length);

/// tokens (B, L) with id 0 where mask (B, L) is set.
at::Tensor hide_tokens(const at::Tensor& tokens, const at::Tensor& mask);

/// values (B, L, c) -> (B, L, c + 1): 0 in every channel where mask is set, then the 0/1 indicator channel.
at::Tensor hide_values(const at::Tensor& values, const at::Tensor& mask);

/// Grey levels 0..255 (int64) of pixels normalised as (p/255 - 0.5)/0.5; every level is met exactly.
at::Tensor grey_levels(const at::Tensor& values);

}  // namespace spt::protocols
