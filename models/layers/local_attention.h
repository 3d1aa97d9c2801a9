#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// Blocks of `window` positions: the queries of a block see the keys of `backward` blocks before it, of its own and of `forward` after it.
struct LocalWindow {
  int64_t window = 0;
  int64_t backward = 0;
  int64_t forward = 0;
};

/// softmax(q k^T / sqrt(d_k)) v over the visible blocks; where `causal`, over no later position (and `forward` is 0).
///
/// Shapes: q, k, v (B, L, H, d_k), real (B, L) bool or undefined -> (B, L, H, d_k). L need be no multiple of the window: the last block is
/// then shorter, which is the same as pads that nobody sees.
/// Pads are hidden as keys; a block that sees nothing but pads sees those, so that what stands at pads stays finite. Causal attention needs
/// no mask for that (Attention says why).
/// Memory: O(L (backward + 1 + forward) H d_k) for copies of keys and values; weights are never stored, a mask is at most (window, span).
/// Errors: SPT_CHECK that causal attention does not look forward. Must equal full attention under a block mask
/// (tests/models/local_attention_test.cpp). Source: published code src/models/sequence/mha.py MultiheadLocalAttention, which refuses an L
/// that is no multiple of the window.
at::Tensor local_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const LocalWindow& window, bool causal,
                           const at::Tensor& real);

/// Pairs (query, key) of one row of length L and one head that are multiplied; of its own block a causal query counts half.
double local_attention_pairs(int64_t length, const LocalWindow& window, bool causal);

}  // namespace spt::models
