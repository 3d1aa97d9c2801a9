#include "models/layers/positions.h"

#include <torch/torch.h>

#include <algorithm>

namespace spt::models {
namespace {

/// p 10000^(-2m/width): (length, width / 2) in float64.
at::Tensor position_angles(int64_t length, int64_t width) {
  const at::Tensor frequency = torch::pow(10000.0, -torch::arange(0, width, 2, torch::kFloat64) / static_cast<double>(width));
  return torch::outer(torch::arange(length, torch::kFloat64), frequency);
}

bool covers(const at::Tensor& table, int64_t length, at::ScalarType dtype, const at::Device& device) {
  return table.defined() && table.size(0) >= length && table.scalar_type() == dtype && table.device() == device;
}

}  // namespace

at::Tensor Sinusoids::table(int64_t length, const at::Tensor& like) {
  if (!covers(table_, length, like.scalar_type(), like.device())) {
    const torch::NoGradGuard no_grad;
    const at::Tensor angle = position_angles(length, width_);
    table_ = torch::stack({angle.sin(), angle.cos()}, -1).flatten(1).slice(1, 0, width_).to(like.options());
  }
  return table_.slice(0, 0, length);
}

at::Tensor Rotary::rotate(const at::Tensor& x) {
  if (x.size(-1) == width_) return rotate_all(x);
  const auto parts = x.split_with_sizes({width_, x.size(-1) - width_}, -1);
  return torch::cat({rotate_all(parts[0]), parts[1]}, -1);
}

at::Tensor Rotary::rotate_all(const at::Tensor& x) {
  const at::ScalarType real = x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const at::ScalarType complex = real == torch::kFloat64 ? torch::kComplexDouble : torch::kComplexFloat;
  const int64_t length = x.size(1);
  if (!covers(table_, length, complex, x.device())) {
    const torch::NoGradGuard no_grad;
    const at::Tensor angle = position_angles(length, width_);
    table_ = torch::complex(angle.cos(), angle.sin()).to(x.device(), complex);
  }
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = length;
  shape.back() = width_ / 2;
  const at::Tensor turn = table_.slice(0, 0, length).view(shape);
  if (pairs_ == RotaryPairs::kNeighbours)
    return torch::view_as_real(torch::view_as_complex(x.to(real).unflatten(-1, {width_ / 2, 2})) * turn).flatten(-2).to(x.scalar_type());
  const at::Tensor pairs = torch::view_as_complex(x.to(real).unflatten(-1, {2, width_ / 2}).transpose(-1, -2).contiguous());
  return torch::view_as_real(pairs * turn).transpose(-1, -2).flatten(-2).to(x.scalar_type());
}

}  // namespace spt::models
