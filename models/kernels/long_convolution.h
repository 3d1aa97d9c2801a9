#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// y_t = sum_{j >= 0} k0_j u_{t-j} + sum_{j >= 0} k1_j u_{t+1+j}, by FFT: k0 looks back (lag 0 included), k1 strictly ahead.
///
/// Shapes: u (B, L, D), kernel (C, D, l) with C = 1 (causal) or 2, l <= L -> (B, L, D), contiguous.
/// Precision: float32, or float64 for a float64 u; never less, autocast or not. The backward pass has real FFTs only and keeps both
/// spectra. Errors: SPT_CHECK of the shapes. Must equal long_convolution_naive().
at::Tensor long_convolution(const at::Tensor& u, const at::Tensor& kernel);

/// The same sums, term by term in double precision on the CPU; no gradient.
at::Tensor long_convolution_naive(const at::Tensor& u, const at::Tensor& kernel);

/// Smallest even length >= minimum that has no prime factor above 5.
int64_t fft_length(int64_t minimum);

/// Forward FLOPs of a row of u, and of the kernel (once a batch): real FFTs of length n, 2.5 n log2 n each.
double real_fft_flops(int64_t n);

}  // namespace spt::models
