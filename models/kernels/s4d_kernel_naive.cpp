#include <torch/torch.h>

#include <cmath>
#include <complex>

#include "models/kernels/s4d_kernel.h"

// The slow twin of s4d_kernel.cpp, in a file of its own because it must share nothing with it.
namespace spt::models {

at::Tensor s4d_kernel_naive(const S4dParameters& p, int64_t length) {
  using Complex = std::complex<double>;
  const auto plain = [](const at::Tensor& t) { return t.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor log_dt = plain(p.log_dt), log_decay = plain(p.inv_w_real), frequency = plain(p.w_imag), input = plain(p.B),
                   readout = plain(p.C);
  const auto dt_of = log_dt.accessor<double, 1>();
  const auto decay_of = log_decay.accessor<double, 2>();
  const auto frequency_of = frequency.accessor<double, 2>();
  const auto B = input.accessor<double, 3>();
  const auto C = readout.accessor<double, 4>();
  at::Tensor kernel = torch::zeros({C.size(0), C.size(1), length}, torch::kFloat64);
  auto K = kernel.accessor<double, 3>();
  for (int64_t c = 0; c < C.size(0); ++c)
    for (int64_t h = 0; h < C.size(1); ++h)
      for (int64_t n = 0; n < C.size(2); ++n) {
        const int64_t s = h % decay_of.size(0);
        const double dt = std::exp(dt_of[h]);
        const Complex A(-std::exp(decay_of[s][n]), frequency_of[s][n]);
        const Complex step = p.bilinear ? (1.0 + dt * A / 2.0) / (1.0 - dt * A / 2.0) : std::exp(dt * A);
        Complex state = Complex(B[s][n][0], B[s][n][1]) * (p.bilinear ? dt / (1.0 - dt * A / 2.0) : (step - 1.0) / A);
        for (int64_t lag = 0; lag < length; ++lag) {
          K[c][h][lag] += 2 * (Complex(C[c][h][n][0], C[c][h][n][1]) * state).real();
          state *= step;
        }
      }
  return kernel;
}

}  // namespace spt::models
