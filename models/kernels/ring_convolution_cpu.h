#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace spt::models {

/// Circular convolution of u (B, L, D) with rings whose spectrum is ring_f (D, n / 2 + 1), cut to L: contiguous float32 on the CPU.
///
/// The batch goes through in blocks of rows (an example's feature) that stay in a core's cache, so the padded rows, their spectra and the
/// products never travel to memory as whole tensors. Sums over the batch have one order whatever the number of threads.
struct RingConvolutionCpu {
  at::Tensor y;                     ///< (B, L, D)
  std::vector<at::Tensor> spectra;  ///< of each block of u, for the backward pass
};
RingConvolutionCpu ring_convolution_cpu(const at::Tensor& u, const at::Tensor& ring_f, int64_t n);

/// Gradients of the two for the gradient of y (B, L, D); the ring's is a spectrum (D, n / 2 + 1). What is not wanted stays undefined.
struct RingGradientCpu {
  at::Tensor u, ring_f;
};
RingGradientCpu ring_convolution_gradient_cpu(const at::Tensor& gradient, const at::Tensor& ring_f, const std::vector<at::Tensor>& spectra,
                                              int64_t n, bool want_u, bool want_ring);

}  // namespace spt::models
