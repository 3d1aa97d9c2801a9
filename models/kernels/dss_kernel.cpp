#include "models/kernels/dss_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <bit>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr double kDssRegular = 1e-7;  ///< of the reciprocals

int64_t dss_block(int64_t length) { return int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2); }

/// exp(x step i), i < count: (H, N) complex128 -> (H, count, N) of `precision`.
at::Tensor dss_powers(const at::Tensor& x, int64_t count, int64_t step, at::ScalarType precision) {
  const at::Tensor lags = at::arange(0, count * step, step, x.options().dtype(torch::kFloat64)).unsqueeze(1);
  return at::exp(x.unsqueeze(1) * lags).to(at::toComplexType(precision));
}

/// Re sum_n weight[c, h, n] exp(x[h, n] l), l < length: (C, H, N), (H, N) -> (C, H, L). No mode may grow.
at::Tensor dss_sum(const at::Tensor& weight, const at::Tensor& x, int64_t length) {
  const at::ScalarType precision = c10::toRealValueType(weight.scalar_type());
  const int64_t T = dss_block(length), blocks = (length + T - 1) / T, C = weight.size(0), H = weight.size(1);
  const at::Tensor starts = dss_powers(x, blocks, T, precision);                                        // (H, blocks, N)
  const at::Tensor coarse = (weight.transpose(0, 1).unsqueeze(2) * starts.unsqueeze(1)).flatten(1, 2);  // (H, C blocks, N)
  const at::Tensor fine = at::conj_physical(dss_powers(x, T, 1, precision));                            // (H, T, N)
  const at::Tensor left = at::view_as_real(coarse).flatten(2), right = at::view_as_real(fine).flatten(2);
  return at::bmm(left, right.transpose(1, 2)).view({H, C, blocks * T}).narrow(2, 0, length).transpose(0, 1);
}

at::Tensor dss_exp_kernel(const at::Tensor& lambda, const at::Tensor& x, const at::Tensor& W, int64_t length) {
  const at::Tensor reciprocal =
      at::conj_physical(lambda) / at::clamp_min(at::real(lambda).square() + at::imag(lambda).square(), kDssRegular);
  return dss_sum(W * ((at::exp(x) - 1) * reciprocal).to(W.scalar_type()), x, length);
}

at::Tensor dss_softmax_kernel(const at::Tensor& lambda, const at::Tensor& x, const at::Tensor& W, int64_t length, int64_t softmax_length) {
  const at::Tensor grows = at::real(lambda).detach().gt(0), growing = grows.to(torch::kFloat64);
  const at::Tensor falling = x * (1 - 2 * growing);  // s x
  const at::Tensor q = lambda * (at::exp(falling * softmax_length) - 1), size = at::real(q).square() + at::imag(q).square();
  const at::Tensor scale = (at::exp(falling) - 1) * at::conj_physical(q) / (size + kDssRegular);
  const at::Tensor decaying = dss_sum(W * (scale * (1 - growing)).to(W.scalar_type()), falling, length);
  if (!grows.any().item<bool>()) return decaying;
  // e^{x (l - m)} = e^{s x (m - l)}, whose gradient is that of e^{x l} once a factor of 1 has carried that of e^{x m}.
  const at::Tensor shift = x * (growing * (softmax_length - 1));
  const at::Tensor mirrored = W * (scale * growing * at::exp(shift - shift.detach())).to(W.scalar_type());
  return decaying + dss_sum(mirrored, falling, softmax_length).flip(-1).narrow(-1, 0, length);
}

}  // namespace

at::Tensor dss_kernel(const DssParameters& p, int64_t length) {
  const int64_t softmax_length = p.softmax_length == 0 ? length : p.softmax_length;
  SPT_CHECK(length > 0 && softmax_length >= length, "a kernel of length {}, its softmax over {}", length, softmax_length);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = p.W.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const at::Tensor W = at::view_as_complex(p.W.to(precision));
  const at::Tensor dt = p.log_dt.to(torch::kFloat64).exp().unsqueeze(-1);  // (H, 1)
  if (p.lambda.defined()) {
    const at::Tensor lambda = at::view_as_complex(p.lambda.to(torch::kFloat64));
    return dss_softmax_kernel(lambda, dt * lambda, W, length, softmax_length);
  }
  const at::Tensor lambda = at::complex(-p.lambda_log_neg_real.to(torch::kFloat64).exp(), p.lambda_imag.to(torch::kFloat64));
  return dss_exp_kernel(lambda, dt * lambda, W, length);
}

double dss_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length) {
  const int64_t T = dss_block(length), blocks = (length + T - 1) / T;
  return 4.0 * static_cast<double>(directions * channels * state) * static_cast<double>(blocks * T);
}

}  // namespace spt::models
