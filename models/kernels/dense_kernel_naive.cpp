#include <torch/torch.h>

#include <cmath>
#include <utility>
#include <vector>

#include "models/kernels/dense_kernel.h"

// The slow twin of dense_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {
namespace {

using DenseRows = std::vector<std::vector<double>>;

/// x of matrix x = right, by Gauss's elimination with the largest pivot.
std::vector<double> dense_eliminate(DenseRows matrix, std::vector<double> right) {
  const size_t n = right.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(matrix[i][k]) > std::abs(matrix[pivot][k])) pivot = i;
    std::swap(matrix[k], matrix[pivot]);
    std::swap(right[k], right[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = matrix[i][k] / matrix[k][k];
      for (size_t j = k; j < n; ++j) matrix[i][j] -= factor * matrix[k][j];
      right[i] -= factor * right[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) right[k] -= matrix[k][j] * right[j];
    right[k] /= matrix[k][k];
  }
  return right;
}

}  // namespace

at::Tensor dense_kernel_naive(const DenseParameters& p, int64_t length) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor log_dt = plain(p.log_dt), matrix = plain(p.A), input = plain(p.B), readout = plain(p.C);
  const auto dt_of = log_dt.accessor<double, 1>();
  const auto A = matrix.accessor<double, 3>();
  const auto B = input.accessor<double, 2>();
  const auto C = readout.accessor<double, 3>();
  const int64_t N = A.size(1);
  at::Tensor kernel = torch::zeros({C.size(0), C.size(1), length}, torch::kFloat64);
  auto K = kernel.accessor<double, 3>();
  for (int64_t h = 0; h < C.size(1); ++h) {
    const int64_t s = h % A.size(0);
    const double dt = std::exp(dt_of[h]);
    DenseRows behind(N, std::vector<double>(N));
    std::vector<double> state(N);
    for (int64_t i = 0; i < N; ++i) {
      state[i] = dt * B[s][i];
      for (int64_t j = 0; j < N; ++j) behind[i][j] = (i == j ? 1.0 : 0.0) - dt / 2 * A[s][i][j];
    }
    state = dense_eliminate(behind, state);
    for (int64_t lag = 0; lag < length; ++lag) {
      for (int64_t c = 0; c < C.size(0); ++c)
        for (int64_t i = 0; i < N; ++i) K[c][h][lag] += C[c][h][i] * state[i];
      std::vector<double> ahead(state);
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j < N; ++j) ahead[i] += dt / 2 * A[s][i][j] * state[j];
      state = dense_eliminate(behind, ahead);
    }
  }
  return kernel;
}

}  // namespace spt::models
