#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// y_t = bias + sum_k weight_k x_{t - K + 1 + k}, channel by channel, x = 0 before the first: a short depthwise convolution.
///
/// Shapes: x (B, L, E), weight (K, E), bias (E) -> (B, L, E), contiguous. CPU: in this layout, parallel over rows; other devices: conv1d.
/// Errors: SPT_CHECK of the shapes. Must equal causal_convolution_naive().
at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The same sums, term by term in double precision on the CPU; no gradient.
at::Tensor causal_convolution_naive(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace spt::models
