#include <torch/torch.h>

#include <cmath>
#include <complex>
#include <vector>

#include "models/kernels/s4_kernel.h"

// The slow twin of s4_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {
namespace {

using S4Complex = std::complex<double>;
using S4Matrix = std::vector<std::vector<S4Complex>>;

S4Matrix s4_identity(size_t n) {
  S4Matrix matrix(n, std::vector<S4Complex>(n));
  for (size_t i = 0; i < n; ++i) matrix[i][i] = 1;
  return matrix;
}

S4Matrix s4_product(const S4Matrix& a, const S4Matrix& b) {
  S4Matrix result(a.size(), std::vector<S4Complex>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) result[i][j] += a[i][k] * b[k][j];
  return result;
}

/// x of matrix x = right, by Gauss and Jordan with the largest pivot.
S4Matrix s4_eliminate(S4Matrix matrix, S4Matrix right) {
  for (size_t k = 0; k < matrix.size(); ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < matrix.size(); ++i)
      if (std::abs(matrix[i][k]) > std::abs(matrix[pivot][k])) pivot = i;
    std::swap(matrix[k], matrix[pivot]);
    std::swap(right[k], right[pivot]);
    const S4Complex head = matrix[k][k];
    for (S4Complex& x : matrix[k]) x /= head;
    for (S4Complex& x : right[k]) x /= head;
    for (size_t i = 0; i < matrix.size(); ++i) {
      if (i == k) continue;
      const S4Complex factor = matrix[i][k];
      for (size_t j = 0; j < matrix.size(); ++j) matrix[i][j] -= factor * matrix[k][j];
      for (size_t j = 0; j < right[k].size(); ++j) right[i][j] -= factor * right[k][j];
    }
  }
  return right;
}

S4Matrix s4_transposed(const S4Matrix& a) {
  S4Matrix result(a[0].size(), std::vector<S4Complex>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) result[j][i] = a[i][j];
  return result;
}

/// Abar and Bbar over all N states, the second half the conjugates of the first.
struct S4Discrete {
  S4Matrix A, B;

  S4Discrete(const std::vector<S4Complex>& w, const std::vector<S4Complex>& P, const std::vector<S4Complex>& input, double dt) {
    const size_t half = w.size(), N = 2 * half;
    const auto full = [half](const std::vector<S4Complex>& x, size_t n) { return n < half ? x[n] : std::conj(x[n - half]); };
    S4Matrix behind = s4_identity(N), ahead = s4_identity(N), right(N, std::vector<S4Complex>(1));
    for (size_t i = 0; i < N; ++i) {
      for (size_t j = 0; j < N; ++j) {
        const S4Complex a = (i == j ? full(w, i) : S4Complex(0)) - full(P, i) * std::conj(full(P, j));
        behind[i][j] -= dt / 2 * a;
        ahead[i][j] += dt / 2 * a;
      }
      right[i][0] = dt * full(input, i);
    }
    A = s4_eliminate(behind, ahead);
    B = s4_eliminate(behind, right);
  }
};

/// The row C of C~ = C (I - Abar^period).
S4Matrix s4_untransformed(const S4Matrix& row, const S4Matrix& A, int64_t period) {
  if (period == 0) return row;
  S4Matrix power = s4_identity(A.size());
  for (int64_t i = 0; i < period; ++i) power = s4_product(power, A);
  S4Matrix rest = s4_identity(A.size());
  for (size_t i = 0; i < A.size(); ++i)
    for (size_t j = 0; j < A.size(); ++j) rest[i][j] -= power[i][j];
  return s4_transposed(s4_eliminate(s4_transposed(rest), s4_transposed(row)));
}

}  // namespace

at::Tensor s4_kernel_naive(const S4Parameters& p, int64_t period, int64_t length) {
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor log_dt = plain(p.log_dt), log_decay = plain(p.inv_w_real), frequency = plain(p.w_imag), low_rank = plain(p.P),
                   input = plain(p.B), readout = plain(p.C);
  const auto dt_of = log_dt.accessor<double, 1>();
  const auto decay_of = log_decay.accessor<double, 2>();
  const auto frequency_of = frequency.accessor<double, 2>();
  const auto P = low_rank.accessor<double, 4>(), B = input.accessor<double, 4>(), C = readout.accessor<double, 4>();
  const int64_t half = C.size(2);
  at::Tensor kernel = torch::zeros({C.size(0), C.size(1), length}, torch::kFloat64);
  auto K = kernel.accessor<double, 3>();
  for (int64_t h = 0; h < C.size(1); ++h) {
    const int64_t s = h % decay_of.size(0);
    std::vector<S4Complex> w, low, in;
    for (int64_t n = 0; n < half; ++n) {
      w.emplace_back(-std::exp(decay_of[s][n]), frequency_of[s][n]);
      low.emplace_back(P[0][s][n][0], P[0][s][n][1]);
      in.emplace_back(B[0][s][n][0], B[0][s][n][1]);
    }
    const S4Discrete discrete(w, low, in, std::exp(dt_of[h]));
    for (int64_t c = 0; c < C.size(0); ++c) {
      S4Matrix row(1, std::vector<S4Complex>(2 * half));
      for (int64_t n = 0; n < half; ++n) {
        row[0][n] = {C[c][h][n][0], C[c][h][n][1]};
        row[0][half + n] = std::conj(row[0][n]);
      }
      row = s4_untransformed(row, discrete.A, period);
      S4Matrix state = discrete.B;
      for (int64_t lag = 0; lag < length; ++lag) {
        K[c][h][lag] = s4_product(row, state)[0][0].real();
        state = s4_product(discrete.A, state);
      }
    }
  }
  return kernel;
}

}  // namespace spt::models
