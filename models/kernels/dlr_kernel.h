#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What a DLR kernel is made of: N modes that all channels and directions share. Complex numbers are real pairs on the last axis.
struct DlrParameters {
  at::Tensor lambda_sqrt_neg_real;  ///< (N): Re lambda = -(it)^2
  at::Tensor lambda_imag;           ///< (N)
  at::Tensor W;                     ///< (directions, H, N, 2)
};

/// K_l = Re sum_n W_n exp(lambda_n l), l < L: no step, no discretization, no conjugate pairs.
///
/// Shapes: -> (directions, H, L). Powers in blocks, z^(i + T j) = z^i z^(T j): about 2 sqrt(L) exponentials a mode. They meet W in one real
/// matrix product, in chunks of L, so that beside the kernel no more than a few MiB are held whatever L is. The backward pass makes the
/// powers again and is one product with [g; l g] on the left: the first half gives the gradient of W, the second that of lambda.
/// Precision: that of W, float32 at least, autocast or not; the exponentials are taken in float64, because angles reach 2 pi L: in float32
/// the result is within 1e-5 of float64, relative to its largest value, at L = 16384 as well.
/// Source: arXiv:2212.00768; published code: src/models/sequence/ss/dss.py class DLRKernel. Must equal dlr_kernel_naive().
at::Tensor dlr_kernel(const DlrParameters& parameters, int64_t length);

/// The same by the recurrence x_{l+1} = exp(lambda) x_l, lag by lag, in plain complex<double> on the CPU; shares no code with it; no
/// gradient.
at::Tensor dlr_kernel_naive(const DlrParameters& parameters, int64_t length);

/// Forward FLOPs, once a batch.
double dlr_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length);

}  // namespace spt::models
