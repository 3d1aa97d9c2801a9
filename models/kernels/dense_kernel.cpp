#include "models/kernels/dense_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <bit>

#include "harness/base/error.h"

namespace spt::models {
namespace {

/// l = T j + i: T a power of two near sqrt(L), and how many j there are.
struct DenseBlocks {
  int64_t size, count;
  explicit DenseBlocks(int64_t length)
      : size(int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) / 2)), count((length + size - 1) / size) {}
};

}  // namespace

at::Tensor dense_bilinear(const at::Tensor& A, const at::Tensor& dt) {
  const at::Tensor half = A * (dt / 2).view({-1, 1, 1}), eye = at::eye(A.size(-1), A.options());
  return at::linalg_solve(eye - half, eye + half);
}

at::Tensor dense_power_product(at::Tensor rows, at::Tensor matrix, int64_t power) {
  for (; power > 0; power /= 2) {
    if (power % 2 == 1) rows = at::bmm(rows, matrix);
    if (power > 1) matrix = at::bmm(matrix, matrix);
  }
  return rows;
}

at::Tensor dense_kernel(const DenseParameters& p, int64_t length) {
  SPT_CHECK(length > 0, "a kernel of length {}", length);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = p.log_dt.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const int64_t H = p.log_dt.size(0), copies = H / p.A.size(0), N = p.A.size(1), directions = p.C.size(0);
  const at::Tensor dt = p.log_dt.to(precision).exp().view({H, 1, 1});
  const at::Tensor half = p.A.to(precision).repeat({copies, 1, 1}) * (dt / 2), eye = at::eye(N, half.options());
  const at::Tensor input = p.B.to(precision).repeat({copies, 1}).unsqueeze(-1) * dt;
  const at::Tensor solved = at::linalg_solve(eye - half, at::cat({eye + half, input}, -1));
  const DenseBlocks blocks(length);
  at::Tensor power = solved.narrow(-1, 0, N), states = solved.narrow(-1, N, 1);  // (H, N, N), (H, N, 1)
  for (int64_t known = 1; known < blocks.size; known *= 2) {
    states = at::cat({states, at::bmm(power, states)}, -1);
    power = at::bmm(power, power);
  }
  at::Tensor rows = p.C.to(precision).transpose(0, 1);  // (H, directions, N), one group of rows for each j
  for (int64_t known = 1; known < blocks.count; known *= 2) {
    if (known > 1) power = at::bmm(power, power);
    rows = at::cat({rows, at::bmm(rows, power)}, 1);
  }
  rows = rows.narrow(1, 0, blocks.count * directions);
  const at::Tensor K = at::bmm(rows, states).view({H, blocks.count, directions, blocks.size});
  return K.permute({2, 0, 1, 3}).reshape({directions, H, blocks.count * blocks.size}).narrow(2, 0, length);
}

double dense_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t length) {
  const DenseBlocks blocks(length);
  const double N = static_cast<double>(state), dirs = static_cast<double>(directions);
  double one = N * N * N * 2 / 3 + 2 * N * N * (N + 1);
  for (int64_t known = 1; known < blocks.size; known *= 2) one += 2 * N * N * (static_cast<double>(known) + N);
  for (int64_t known = 1; known < blocks.count; known *= 2) one += 2 * N * N * (static_cast<double>(known) * dirs + (known > 1 ? N : 0));
  one += 2 * static_cast<double>(blocks.count * blocks.size) * dirs * N;
  return static_cast<double>(channels) * one;
}

}  // namespace spt::models
