#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What all channels of an S4 kernel share, at the half angles pi j / period, j = 0 .. period / 2 (F of them).
struct S4Nodes {
  at::Tensor cos, sin;
};

/// The steps of s4_kernel() that are no matrix product, each in one pass for float32 on the CPU; s4_kernel.cpp has them in tensor
/// operations for everything else, and says what they are. Contiguous tensors. Shapes: h channels, M pairs, d directions, R = 2 (d + 1)
/// rows.
bool s4_has_cpu_steps(const at::Tensor& like);

/// w (h, M) real and imaginary -> 1 / d, (h, M, 2 F).
at::Tensor s4_cpu_inverse(const at::Tensor& w_real, const at::Tensor& w_imag, const S4Nodes& nodes);

/// Products (h, 2 R, 2 F) -> K^, (h, d, F) complex.
at::Tensor s4_cpu_combine(const at::Tensor& products, const S4Nodes& nodes);

/// Gradient of the products, given that of K^.
at::Tensor s4_cpu_combine_gradient(const at::Tensor& products, const at::Tensor& gradient, const S4Nodes& nodes);

/// Gradients of w, given 1 / d and its gradient: (2, h, M), real then imaginary.
at::Tensor s4_cpu_inverse_gradient(const at::Tensor& w_real, const at::Tensor& w_imag, const at::Tensor& inverse,
                                   const at::Tensor& gradient, const S4Nodes& nodes);

}  // namespace spt::models
