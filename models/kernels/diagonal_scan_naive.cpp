#include <torch/torch.h>

#include <complex>

#include "models/kernels/diagonal_scan.h"

// The slow twin of diagonal_scan.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor diagonal_scan_naive(const at::Tensor& a, const at::Tensor& b, bool reverse) {
  const at::Tensor factors = a.detach().to(torch::kCPU, torch::kFloat64).contiguous(),
                   inputs = b.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  at::Tensor states = torch::empty_like(inputs);
  const auto factor = factors.accessor<double, 2>();
  const auto input = inputs.accessor<double, 3>();
  auto state = states.accessor<double, 3>();
  const int64_t L = inputs.size(1), N = factors.size(1);
  for (int64_t row = 0; row < inputs.size(0); ++row)
    for (int64_t n = 0; n < N; ++n) {
      std::complex<double> x = 0;
      for (int64_t step = 0; step < L; ++step) {
        const int64_t t = reverse ? L - 1 - step : step;
        x = std::complex<double>(factor[0][n], factor[1][n]) * x + std::complex<double>(input[row][t][n], input[row][t][N + n]);
        state[row][t][n] = x.real();
        state[row][t][N + n] = x.imag();
      }
    }
  return states;
}

}  // namespace spt::models
