#include "models/layers/mimo.h"

#include <torch/torch.h>

#include "models/kernels/diagonal_scan.h"

namespace spt::models {

at::Tensor mimo_forward(const MimoSystem& system, const at::Tensor& u) {
  const at::Tensor b = torch::linear(u, system.B);  // (B, L, 2 N)
  at::Tensor y = u * system.D.to(u.scalar_type());
  for (int64_t direction = 0; direction < system.C.size(0); ++direction) {
    const at::Tensor C = system.C[direction];
    const at::Tensor readout = torch::cat({C.select(-1, 0), -C.select(-1, 1)}, -1) * system.scale;  // (D, 2 N)
    y = y + torch::linear(diagonal_scan(system.a, b, direction == 1), readout);
  }
  return y;
}

double mimo_flops(int64_t length, int64_t d_model, int64_t states, int64_t directions) {
  const double product = 4.0 * static_cast<double>(length * d_model * states);
  return product + static_cast<double>(directions) * (product + diagonal_scan_flops(length, states));
}

}  // namespace spt::models
