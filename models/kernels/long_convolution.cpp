#include "models/kernels/long_convolution.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "harness/base/error.h"
#include "models/kernels/ring_convolution_cpu.h"

namespace spt::models {
namespace {

/// Spectrum of each feature of x (B, L, D), zero-padded to n: (B, D, n / 2 + 1).
at::Tensor feature_spectrum(const at::Tensor& x, int64_t n) { return at::fft_rfft(x.transpose(1, 2), n); }

/// The first `length` positions of the inverse, (B, length, D) contiguous.
at::Tensor from_spectrum(const at::Tensor& spectrum, int64_t n, int64_t length) {
  return at::fft_irfft(spectrum, n).narrow(-1, 0, length).transpose(1, 2).contiguous();
}

/// Circular convolution of u (B, L, D) with ring (D, n), cut to L.
class RingConvolution : public torch::autograd::Function<RingConvolution> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& u, const at::Tensor& ring) {
    const int64_t n = ring.size(-1);
    const at::Tensor ring_f = at::fft_rfft(ring, n);
    context->saved_data["n"] = n;
    if (in_blocks(u)) {
      RingConvolutionCpu out = ring_convolution_cpu(u.contiguous(), ring_f, n);
      out.spectra.push_back(ring_f);
      context->save_for_backward(std::move(out.spectra));
      return out.y;
    }
    const at::Tensor u_f = feature_spectrum(u, n);
    context->save_for_backward({u_f, ring_f});
    return from_spectrum(u_f * ring_f, n, u.size(1));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    auto spectra = context->get_saved_variables();
    const at::Tensor ring_f = spectra.back();
    spectra.pop_back();
    const int64_t n = context->saved_data["n"].toInt(), length = gradients[0].size(1);
    const bool want_u = context->needs_input_grad(0), want_ring = context->needs_input_grad(1);
    if (in_blocks(gradients[0])) {
      const RingGradientCpu gradient = ring_convolution_gradient_cpu(gradients[0].contiguous(), ring_f, spectra, n, want_u, want_ring);
      return {gradient.u, want_ring ? at::fft_irfft(gradient.ring_f, n) : at::Tensor()};
    }
    const at::Tensor gradient_f = feature_spectrum(gradients[0], n);
    at::Tensor gradient_u, gradient_ring;
    if (want_u) gradient_u = from_spectrum(gradient_f * ring_f.conj().resolve_conj(), n, length);
    if (want_ring) gradient_ring = at::fft_irfft(at::conj_physical(spectra[0]).mul_(gradient_f).sum(0), n);
    return {gradient_u, gradient_ring};
  }

 private:
  static bool in_blocks(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == torch::kFloat32 && x.numel() > 0; }
};

/// Kernels (C, D, l) on a ring of n >= L + l lags: lag j at j, lag -1 - j at n - 1 - j.
at::Tensor on_ring(const at::Tensor& kernel, int64_t n) {
  const int64_t l = kernel.size(2);
  if (kernel.size(0) == 1) return at::constant_pad_nd(kernel[0], {0, n - l});
  return at::cat({at::constant_pad_nd(kernel[0], {0, n - 2 * l}), kernel[1].flip(-1)}, -1);
}

void check_convolution(const at::Tensor& u, const at::Tensor& kernel) {
  SPT_CHECK(u.dim() == 3 && kernel.dim() == 3, "u has {} dimensions, kernel {}", u.dim(), kernel.dim());
  SPT_CHECK(kernel.size(0) == 1 || kernel.size(0) == 2, "{} directions", kernel.size(0));
  SPT_CHECK(kernel.size(1) == u.size(2) && kernel.size(2) <= u.size(1), "kernel ({}, {}) for u of length {} and width {}", kernel.size(1),
            kernel.size(2), u.size(1), u.size(2));
}

}  // namespace

int64_t fft_length(int64_t minimum) {
  for (int64_t n = minimum + minimum % 2;; n += 2) {
    int64_t rest = n;
    for (const int64_t factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

double real_fft_flops(int64_t n) { return 2.5 * static_cast<double>(n) * std::log2(static_cast<double>(n)); }

at::Tensor long_convolution(const at::Tensor& u, const at::Tensor& kernel) {
  check_convolution(u, kernel);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = u.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const at::Tensor ring = on_ring(kernel.to(precision), fft_length(u.size(1) + kernel.size(2)));
  return RingConvolution::apply(u.to(precision), ring).to(u.scalar_type());
}

at::Tensor long_convolution_naive(const at::Tensor& u, const at::Tensor& kernel) {
  check_convolution(u, kernel);
  const at::Tensor input = u.detach().to(torch::kCPU, torch::kFloat64).contiguous(),
                   taps = kernel.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  at::Tensor output = torch::zeros_like(input);
  const auto x = input.accessor<double, 3>();
  const auto k = taps.accessor<double, 3>();
  auto y = output.accessor<double, 3>();
  const int64_t L = x.size(1), l = k.size(2);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t t = 0; t < L; ++t)
      for (int64_t d = 0; d < x.size(2); ++d) {
        for (int64_t j = 0; j < l && j <= t; ++j) y[b][t][d] += k[0][d][j] * x[b][t - j][d];
        if (k.size(0) == 2)
          for (int64_t j = 0; j < l && t + 1 + j < L; ++j) y[b][t][d] += k[1][d][j] * x[b][t + 1 + j][d];
      }
  return output;
}

}  // namespace spt::models
