#include <torch/torch.h>

#include <cmath>
#include <complex>

#include "models/kernels/dlr_kernel.h"

// The slow twin of dlr_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor dlr_kernel_naive(const DlrParameters& p, int64_t length) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor roots = plain(p.lambda_sqrt_neg_real), frequencies = plain(p.lambda_imag), weights = plain(p.W);
  const auto root = roots.accessor<double, 1>();
  const auto frequency = frequencies.accessor<double, 1>();
  const auto W = weights.accessor<double, 4>();
  at::Tensor kernel = torch::zeros({W.size(0), W.size(1), length}, torch::kFloat64);
  auto K = kernel.accessor<double, 3>();
  for (int64_t c = 0; c < W.size(0); ++c)
    for (int64_t h = 0; h < W.size(1); ++h)
      for (int64_t n = 0; n < W.size(2); ++n) {
        const std::complex<double> step = std::exp(std::complex<double>(-root[n] * root[n], frequency[n]));
        std::complex<double> state(W[c][h][n][0], W[c][h][n][1]);
        for (int64_t lag = 0; lag < length; ++lag) {
          K[c][h][lag] += state.real();
          state *= step;
        }
      }
  return kernel;
}

}  // namespace spt::models
