#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spt::models {

/// Rows of one head inside a larger tensor: row i starts at data + i * stride and has consecutive elements.
struct HeadRows {
  float* data = nullptr;
  int64_t stride = 0;  ///< in elements
};

/// How many rows one head has, and which keys each query sees.
struct AttentionShape {
  int64_t queries = 0;
  int64_t keys = 0;                   ///< keys that are seen at all
  int64_t size = 0;                   ///< elements of a row, d: a multiple of 8
  const int32_t* key_rows = nullptr;  ///< the row of each of those keys, ascending
  bool causal = false;                ///< query i sees only keys whose row is <= i
};

struct AttentionHead {
  HeadRows q, k, v, out;
  float* log_sum = nullptr;  ///< (queries): log2 of the sum over keys of e^score; 1e30 where a query sees no key
};

/// That of out is given; those of k and v are written at key_rows only.
struct AttentionGradients {
  HeadRows out, q, k, v;
};

/// Attention of one head in float32 with vectors of one length: out = softmax(q k^T / sqrt(d)) v, and 0 where a query sees no key.
///
/// Memory O((queries + keys) d): scores are made block by block, twice. Numbers differ between variants in rounding.
/// Source: arXiv:2205.14135 algorithms 1 and 4. Must equal fused_attention_naive().
struct AttentionKernels {
  std::string_view name;
  int64_t (*scratch_size)(const AttentionShape&);  ///< floats of scratch memory, aligned to 64 bytes, that either pass needs
  void (*forward)(const AttentionShape&, const AttentionHead&, float* scratch);  ///< writes out and log_sum
  void (*backward)(const AttentionShape&, const AttentionHead&, const AttentionGradients&, float* scratch);
};

/// Those that this processor can run: none, "avx2", or "avx2" and "avx512".
const std::vector<AttentionKernels>& attention_kernels();

}  // namespace spt::models
