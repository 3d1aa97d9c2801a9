#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "models/kernels/dss_kernel.h"

// The slow twin of dss_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor dss_kernel_naive(const DssParameters& p, int64_t length) {
  using Complex = std::complex<double>;
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const bool softmax = p.lambda.defined();
  const double span = static_cast<double>(p.softmax_length == 0 ? length : p.softmax_length);
  const at::Tensor log_dt = plain(p.log_dt), weights = plain(p.W);
  const at::Tensor modes = softmax ? plain(p.lambda) : torch::stack({-plain(p.lambda_log_neg_real).exp(), plain(p.lambda_imag)}, -1);
  const auto mode = modes.accessor<double, 2>();
  const auto log_step = log_dt.accessor<double, 1>();
  const auto W = weights.accessor<double, 4>();
  at::Tensor kernel = torch::zeros({W.size(0), W.size(1), length}, torch::kFloat64);
  auto K = kernel.accessor<double, 3>();
  for (int64_t c = 0; c < W.size(0); ++c)
    for (int64_t h = 0; h < W.size(1); ++h)
      for (int64_t n = 0; n < W.size(2); ++n) {
        const Complex lambda(mode[n][0], mode[n][1]), x = std::exp(log_step[h]) * lambda;
        const bool grows = softmax && lambda.real() > 0;
        const double sign = grows ? -1 : 1, shift = grows ? span - 1 : 0;
        const Complex divisor = softmax ? lambda * (std::exp(sign * x * span) - 1.0) : lambda;
        const double size = softmax ? std::norm(divisor) + 1e-7 : std::max(std::norm(divisor), 1e-7);
        const Complex scale = Complex(W[c][h][n][0], W[c][h][n][1]) * (std::exp(sign * x) - 1.0) * std::conj(divisor) / size;
        for (int64_t lag = 0; lag < length; ++lag) K[c][h][lag] += (scale * std::exp(x * (static_cast<double>(lag) - shift))).real();
      }
  return kernel;
}

}  // namespace spt::models
