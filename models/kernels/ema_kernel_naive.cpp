#include <torch/torch.h>

#include <cmath>

#include "models/kernels/ema_kernel.h"

// The slow twin of ema_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor ema_kernel_naive(const EmaParameters& parameters, int64_t length) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).flatten(1).contiguous(); };
  const at::Tensor deltas = plain(parameters.delta), alphas = plain(parameters.alpha), betas = plain(parameters.beta),
                   gammas = plain(parameters.gamma);
  const auto delta = deltas.accessor<double, 2>(), alpha = alphas.accessor<double, 2>(), beta = betas.accessor<double, 2>(),
             gamma = gammas.accessor<double, 2>();
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const int64_t rows = deltas.size(0), state = deltas.size(1);
  at::Tensor kernel = torch::zeros({rows, length}, torch::kFloat64);
  auto K = kernel.accessor<double, 2>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < state; ++n) {
      const double p = sigmoid(delta[r][n]);
      double h = p * beta[r][n];  // the answer of the state to a single 1
      for (int64_t lag = 0; lag < length; ++lag) {
        K[r][lag] += gamma[r][n] * h / std::sqrt(static_cast<double>(state));
        h *= 1 - p * sigmoid(alpha[r][n]);
      }
    }
  return kernel;
}

}  // namespace spt::models
