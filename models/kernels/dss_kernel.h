#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// What a DSS kernel is made of: N modes shared by the channels, a step a channel. Complex numbers are real pairs on the last axis. Either
/// `lambda` (version softmax) or the other two tensors of the modes (version exp) are defined.
struct DssParameters {
  at::Tensor log_dt;               ///< (H)
  at::Tensor lambda_log_neg_real;  ///< (N), exp: Re lambda = -exp of it
  at::Tensor lambda_imag;          ///< (N), exp
  at::Tensor lambda;               ///< (N, 2), softmax
  at::Tensor W;                    ///< (directions, H, N, 2)
  int64_t softmax_length = 0;      ///< lags that a softmax is normalised over, at least as many as are asked for; 0: those
};

/// exp: K_l = Re sum_n W_n (e^x - 1) r(lambda) e^{x l}, x = dt lambda, r(a) = conj(a) / max(|a|^2, 1e-7).
/// softmax: K_l = Re sum_n W_n (e^{s x} - 1) r(lambda (e^{s x S} - 1)) e^{x (l - m)}, r(a) = conj(a) / (|a|^2 + 1e-7), S the softmax's
/// length; s = -1 and m = S - 1 where Re lambda > 0, else s = 1 and m = 0: W / lambda times the weights softmax_l(x l).
///
/// Shapes: -> (directions, H, L). Powers in blocks as in s4d_kernel(), growing modes counted from the other end, so that nothing overflows.
/// As in the published code the gradient takes the shift x m for a constant. Precision: that of W, float32 at least (the published kernel
/// rounds to 32 bits), autocast or not; exponentials are taken in float64.
/// Source: arXiv:2203.14343 Proposition 1; published code: src/models/sequence/ss/dss.py class DSSKernel.
/// Must equal dss_kernel_naive().
at::Tensor dss_kernel(const DssParameters& parameters, int64_t length);

/// The same lag by lag in plain complex<double> on the CPU; shares no code with it; no gradient.
at::Tensor dss_kernel_naive(const DssParameters& parameters, int64_t length);

/// Forward FLOPs, once a batch, where no mode grows.
double dss_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length);

}  // namespace spt::models
