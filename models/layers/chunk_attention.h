#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

struct ChunkAttention {
  int64_t chunk = 0;     ///< length of a chunk; 0: the whole row is one
  bool laplace = false;  ///< else softmax
  bool causal = false;   ///< a position sees itself and the earlier ones of its chunk
};

/// One head of attention inside chunks, with a learned bias by distance: w v with w = softmax(q k^T / sqrt(z) + bias), or
/// laplace(q k^T / n + bias), laplace(x) = (1 + erf((x - 0.707107) / (0.282095 sqrt 2))) / 2, n the number of keys that the query sees.
///
/// Shapes: q, k (B, L, z), v (B, L, v), positions (2 M - 1), real (B, L) bool or undefined -> (B, L, v). bias[i, j] = positions[M - 1 + j -
/// i] for query i and key j of a chunk. A row no longer than the chunk is one chunk of its own length. L need be no multiple of the chunk:
/// rows are padded inside, and nobody sees those pads (the published code refuses such an L). Pads are hidden as keys and not counted in n;
/// a chunk of nothing but pads sees them, so that what stands there stays finite. Causal attention needs no mask for that: rows are
/// right-padded. Memory: O(B L chunk). Errors: Error where a chunk is longer than M. Source: arXiv:2209.10655 section 3.2-3.4; published
/// code src/models/sequence/mega.py MegaBlock.
at::Tensor chunk_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& positions,
                           const at::Tensor& real, const ChunkAttention& options);

/// Forward FLOPs of one row of length L; causal attention half.
double chunk_attention_flops(int64_t key_width, int64_t value_width, int64_t length, const ChunkAttention& options);

}  // namespace spt::models
