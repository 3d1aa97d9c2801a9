#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// Multi-head attention: softmax(q k^T / sqrt(d)) v over the keys that are real and, where `causal`, not later than the query.
///
/// Shapes: q (B, H, L, d), k and v (B, H, K, d), real (B, K) bool or undefined for all -> (B, H, L, d), a view of (B, L, H, d).
/// Kernels of our own serve float32 on a CPU with AVX2 or AVX-512 (whichever ATen uses), d a multiple of 8 up to 64, K >= 32, and no
/// autocast; everything else is at::scaled_dot_product_attention. Ours gives the same numbers for any batch and any number of threads,
/// 0 where no key is real, and has no second derivative.
/// Errors: SPT_CHECK of the shapes. Must equal fused_attention_naive().
/// Source: arXiv:2205.14135.
at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& real, bool causal);

/// The same sums, term by term in double precision on the CPU; no gradient.
at::Tensor fused_attention_naive(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& real, bool causal);

}  // namespace spt::models
