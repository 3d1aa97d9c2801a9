#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/kernels/causal_convolution.h"
#include "models/kernels/diagonal_scan.h"
#include "models/kernels/selective_scan.h"

namespace spt::models {
namespace {

double scan_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.to(torch::kFloat64);
  return (a.to(torch::kFloat64) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

struct DiagonalInput {
  at::Tensor a, b;
};

DiagonalInput diagonal_input(int64_t rows, int64_t length, int64_t states) {
  torch::manual_seed(4);
  return {torch::tanh(torch::randn({2, states}, torch::kFloat64)) * 0.7, torch::randn({rows, length, 2 * states}, torch::kFloat64)};
}

SelectiveScanInput selective_input(int64_t rows, int64_t length, int64_t channels, int64_t states) {
  torch::manual_seed(4);
  const auto normal = [](at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); };
  return {normal({rows, length, channels}), torch::softplus(normal({rows, length, channels})), -torch::exp(normal({channels, states})),
          normal({rows, length, states}), normal({rows, length, states})};
}

std::vector<at::Tensor*> parts_of(SelectiveScanInput& in) { return {&in.u, &in.dt, &in.A, &in.B, &in.C}; }

TEST(DiagonalScan, MatchesTheRecurrenceForAnyLengthAndStateSize) {
  for (const int64_t length : {1, 2, 33, 100})
    for (const int64_t states : {1, 31, 32, 65})
      for (const bool reverse : {false, true}) {
        const auto [a, b] = diagonal_input(3, length, states);
        const at::Tensor want = diagonal_scan_naive(a, b, reverse);
        EXPECT_LT(scan_difference(diagonal_scan(a, b, reverse), want), 1e-12) << length << " " << states << " " << reverse;
        EXPECT_LT(scan_difference(diagonal_scan_by_doubling(a, b, reverse), want), 1e-12) << length << " " << states << " " << reverse;
      }
  const auto [a, b] = diagonal_input(2, 9, 3);
  EXPECT_GT(scan_difference(diagonal_scan(a, b, true), diagonal_scan_naive(a, b, false)), 1e-3);  // the comparison can fail
}

TEST(DiagonalScan, HasTheGradientOfThePassesOfOtherDevices) {
  for (const bool reverse : {false, true}) {
    at::Tensor gradients[2][2];
    for (const bool fast : {true, false}) {
      auto [a, b] = diagonal_input(3, 50, 37);
      a.requires_grad_();
      b.requires_grad_();
      const at::Tensor x = fast ? diagonal_scan(a, b, reverse) : diagonal_scan_by_doubling(a, b, reverse);
      torch::manual_seed(8);
      (x * torch::randn_like(x)).sum().backward();
      gradients[fast][0] = a.grad();
      gradients[fast][1] = b.grad();
    }
    for (const int i : {0, 1}) EXPECT_LT(scan_difference(gradients[1][i], gradients[0][i]), 1e-11) << reverse << " " << i;
  }
}

TEST(DiagonalScan, StaysAccurateInFloat32WhereMemoryIsLong) {
  auto [a, b] = diagonal_input(1, 4000, 8);
  a[0].fill_(0.999);
  a[1].fill_(0.04);
  EXPECT_LT(scan_difference(diagonal_scan(a.to(torch::kFloat32), b.to(torch::kFloat32), false), diagonal_scan_naive(a, b, false)), 1e-4);
}

TEST(DiagonalScan, ReadsStridedInputAndRefusesOtherShapes) {
  auto [a, b] = diagonal_input(3, 20, 6);
  const at::Tensor strided = b.transpose(0, 1).contiguous().transpose(0, 1);
  EXPECT_TRUE(torch::equal(diagonal_scan(a, strided, false), diagonal_scan(a, b, false)));
  EXPECT_ANY_THROW(diagonal_scan(a, b.narrow(2, 0, 6), false));
  EXPECT_ANY_THROW(diagonal_scan(a[0], b, false));
}

TEST(SelectiveScan, MatchesTheRecurrenceForAnyShape) {
  for (const int64_t length : {1, 31, 32, 33, 70})
    for (const int64_t channels : {1, 32, 45})
      for (const int64_t states : {1, 16}) {
        const SelectiveScanInput in = selective_input(2, length, channels, states);
        const at::Tensor want = selective_scan_naive(in);
        EXPECT_LT(scan_difference(selective_scan(in), want), 1e-12) << length << " " << channels << " " << states;
        EXPECT_LT(scan_difference(selective_scan_by_steps(in), want), 1e-12) << length << " " << channels << " " << states;
      }
  SelectiveScanInput in = selective_input(2, 9, 4, 3);
  const at::Tensor want = selective_scan_naive(in);
  in.A = in.A * 1.01;
  EXPECT_GT(scan_difference(selective_scan(in), want), 1e-5);  // the comparison can fail
}

TEST(SelectiveScan, HasTheGradientOfTheStepsOfOtherDevices) {
  for (const int64_t length : {1, 32, 75}) {
    SelectiveScanInput inputs[2];
    for (const bool fast : {true, false}) {
      SelectiveScanInput& in = inputs[fast] = selective_input(2, length, 37, 5);
      for (at::Tensor* part : parts_of(in)) part->requires_grad_();
      const at::Tensor y = fast ? selective_scan(in) : selective_scan_by_steps(in);
      torch::manual_seed(8);
      (y * torch::randn_like(y)).sum().backward();
    }
    const auto fast = parts_of(inputs[1]), slow = parts_of(inputs[0]);
    for (size_t i = 0; i < fast.size(); ++i) {
      if (i == 2 && length == 1) continue;  // h = 0 before the first position: no gradient of A
      EXPECT_LT(scan_difference(fast[i]->grad(), slow[i]->grad()), 1e-11) << length << " " << i;
    }
  }
}

TEST(SelectiveScan, IsAccurateInFloat32FromTinyToHugeSteps) {
  for (const double scale : {1e-6, 1.0, 1e4}) {
    SelectiveScanInput in = selective_input(2, 60, 20, 16);
    in.dt = in.dt * scale;
    const at::Tensor want = selective_scan_naive(in);
    for (at::Tensor* part : parts_of(in)) *part = part->to(torch::kFloat32);
    EXPECT_LT(scan_difference(selective_scan(in), want), 1e-5) << scale;
  }
}

TEST(SelectiveScan, GivesTheSameBitsWhateverTheOtherRowsAre) {
  SelectiveScanInput in = selective_input(4, 40, 33, 7);
  const at::Tensor all = selective_scan(in);
  for (at::Tensor* part : {&in.u, &in.dt, &in.B, &in.C}) *part = part->narrow(0, 2, 1);
  EXPECT_TRUE(torch::equal(selective_scan(in), all.narrow(0, 2, 1)));
}

TEST(CausalConvolution, MatchesTheSumAndTheGradientOfConv1d) {
  torch::manual_seed(6);
  for (const int64_t length : {1, 2, 3, 4, 50}) {
    const auto leaf = [](at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64).requires_grad_(); };
    const at::Tensor x = leaf({3, length, 21}), weight = leaf({4, 21}), bias = leaf({21}),
                     g = torch::randn({3, length, 21}, torch::kFloat64);
    const at::Tensor y = causal_convolution(x, weight, bias);
    EXPECT_LT(scan_difference(y, causal_convolution_naive(x, weight, bias)), 1e-12) << length;
    const at::Tensor plain = torch::conv1d(x.transpose(1, 2), weight.t().unsqueeze(1), bias, 1, 3, 1, 21).narrow(2, 0, length);
    const auto got = torch::autograd::grad({(y * g).sum()}, {x, weight, bias});
    const auto want = torch::autograd::grad({(plain.transpose(1, 2) * g).sum()}, {x, weight, bias});
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(scan_difference(got[i], want[i]), 1e-11) << length << " " << i;
  }
  EXPECT_ANY_THROW(causal_convolution(torch::zeros({1, 4, 3}), torch::zeros({4, 2}), torch::zeros({3})));
}

TEST(Scans, StayInFloat32UnderAutocast) {
  const auto [a, b] = diagonal_input(2, 30, 4);
  const SelectiveScanInput in = selective_input(2, 30, 4, 3);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor x = diagonal_scan(a.to(torch::kFloat32), b.to(torch::kBFloat16), false);
  const at::Tensor y = selective_scan({in.u.to(torch::kBFloat16), in.dt.to(torch::kBFloat16), in.A.to(torch::kFloat32),
                                       in.B.to(torch::kBFloat16), in.C.to(torch::kBFloat16)});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(x.scalar_type(), torch::kFloat32);
  EXPECT_EQ(y.scalar_type(), torch::kFloat32);
}

TEST(SelectiveScan, RefusesOtherShapes) {
  SelectiveScanInput in = selective_input(2, 9, 4, 3);
  in.B = in.B.narrow(1, 0, 8);
  EXPECT_ANY_THROW(selective_scan(in));
  in = selective_input(2, 9, 4, 3);
  in.A = in.A.narrow(0, 0, 3);
  EXPECT_ANY_THROW(selective_scan(in));
}

}  // namespace
}  // namespace spt::models
