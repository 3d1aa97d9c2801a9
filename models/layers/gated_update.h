#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// x + sigmoid(gate) (silu(a + b) - x), element by element.
///
/// Shapes: all (.., D) -> (.., D), of one type. On the CPU a few rows at a time, forwards and backwards, so that what lies between stays in
/// the cache; the backward pass makes it again. Must equal gated_update_naive().
at::Tensor gated_update(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& a, const at::Tensor& b);

/// The same by one operation after the other.
at::Tensor gated_update_naive(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& a, const at::Tensor& b);

}  // namespace spt::models
