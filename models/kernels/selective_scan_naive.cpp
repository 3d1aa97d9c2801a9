#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "models/kernels/selective_scan.h"

// The slow twin of selective_scan.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor selective_scan_naive(const SelectiveScanInput& input) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor inputs = plain(input.u), steps = plain(input.dt), matrix = plain(input.A), in = plain(input.B), out = plain(input.C);
  at::Tensor outputs = torch::zeros_like(inputs);
  const auto u = inputs.accessor<double, 3>(), dt = steps.accessor<double, 3>(), B = in.accessor<double, 3>(),
             C = out.accessor<double, 3>();
  const auto A = matrix.accessor<double, 2>();
  auto y = outputs.accessor<double, 3>();
  for (int64_t row = 0; row < u.size(0); ++row)
    for (int64_t e = 0; e < u.size(2); ++e) {
      std::vector<double> h(static_cast<size_t>(A.size(1)), 0.0);
      for (int64_t t = 0; t < u.size(1); ++t)
        for (int64_t n = 0; n < A.size(1); ++n) {
          double& state = h[static_cast<size_t>(n)];
          state = std::exp(dt[row][t][e] * A[e][n]) * state + dt[row][t][e] * B[row][t][n] * u[row][t][e];
          y[row][t][e] += C[row][t][n] * state;
        }
    }
  return outputs;
}

}  // namespace spt::models
