#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/kernels/long_convolution.h"
#include "models/kernels/s4d_kernel.h"
#include "models/kernels/selftest.h"

namespace spt::models {
namespace {

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.to(torch::kFloat64);
  return (a.to(torch::kFloat64) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

S4dParameters some_parameters(int64_t channels, int64_t copies, int64_t pairs, int64_t directions) {
  torch::manual_seed(5);
  const auto options = torch::dtype(torch::kFloat64);
  return {torch::randn({channels}, options) * 0.5 - 4, torch::randn({copies, pairs}, options) * 0.3 - 0.7,
          torch::randn({copies, pairs}, options) * 5, torch::randn({copies, pairs, 2}, options),
          torch::randn({directions, channels, pairs, 2}, options)};
}

TEST(KernelSelftest, AgreesWithTheTwinsInValueAndGradient) {
  const auto checks = run_kernel_selftests(torch::kCPU);
  EXPECT_GE(checks.size(), 20u);
  for (const KernelCheck& check : checks) EXPECT_TRUE(check.ok) << check.name << ": " << check.max_error << " > " << check.tolerance;
}

TEST(S4dKernel, MatchesNaiveRecurrence) {
  for (const int64_t length : {1, 2, 3, 16, 31, 32, 33, 100, 257})
    for (const bool bilinear : {true, false}) {
      S4dParameters p = some_parameters(6, 3, 4, 2);
      p.bilinear = bilinear;
      EXPECT_LT(relative_difference(s4d_kernel(p, length), s4d_kernel_naive(p, length)), 1e-10)
          << length << (bilinear ? " bilinear" : " zoh");
    }
}

TEST(S4dKernel, IsNotTheOtherDiscretization) {  // the comparison above can fail
  S4dParameters p = some_parameters(4, 4, 3, 1);
  const at::Tensor bilinear = s4d_kernel(p, 40);
  p.bilinear = false;
  EXPECT_GT(relative_difference(bilinear, s4d_kernel_naive(p, 40)), 1e-5);
}

TEST(S4dKernel, SharesStateMatricesByChannelModuloCopies) {
  const S4dParameters shared = some_parameters(4, 2, 3, 1);
  S4dParameters apart = shared;
  for (at::Tensor* t : {&apart.inv_w_real, &apart.w_imag}) *t = t->repeat({2, 1});
  apart.B = apart.B.repeat({2, 1, 1});
  EXPECT_LT(relative_difference(s4d_kernel(shared, 21), s4d_kernel(apart, 21)), 1e-12);
}

TEST(S4dKernel, StaysInFloat32UnderAutocast) {
  S4dParameters p = some_parameters(4, 4, 3, 2);
  for (at::Tensor* t : {&p.log_dt, &p.inv_w_real, &p.w_imag, &p.B, &p.C}) *t = t->to(torch::kFloat32);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor kernel = s4d_kernel(p, 64);
  const at::Tensor y = long_convolution(torch::ones({1, 64, 4}, torch::kBFloat16), kernel);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(kernel.scalar_type(), torch::kFloat32);
  EXPECT_LT(relative_difference(kernel, s4d_kernel_naive(p, 64)), 1e-4);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_LT(relative_difference(y, long_convolution_naive(torch::ones({1, 64, 4}), kernel)), 1e-2);
}

TEST(LongConvolution, MatchesDirectSumForAnyLength) {
  for (const int64_t length : {1, 2, 5, 16, 37})
    for (const int64_t directions : {1, 2})
      for (const int64_t taps : {int64_t{1}, (length + 1) / 2, length}) {
        torch::manual_seed(3);
        const at::Tensor u = torch::randn({3, length, 4}, torch::kFloat64), k = torch::randn({directions, 4, taps}, torch::kFloat64);
        EXPECT_LT(relative_difference(long_convolution(u, k), long_convolution_naive(u, k)), 1e-12)
            << length << " " << directions << " " << taps;
      }
}

TEST(LongConvolution, GivesContiguousOutputAndGradientOfStridedInput) {
  torch::manual_seed(3);
  const at::Tensor strided = torch::randn({2, 4, 9}, torch::kFloat64).transpose(1, 2).requires_grad_();
  const at::Tensor k = torch::randn({2, 4, 9}, torch::kFloat64).requires_grad_();
  const at::Tensor y = long_convolution(strided, k);
  EXPECT_TRUE(y.is_contiguous());
  y.sum().backward();
  EXPECT_TRUE(strided.grad().defined());
  // d sum(y) / d u_s = sum of the taps that reach a position inside.
  const at::Tensor u = torch::zeros({1, 9, 4}, torch::kFloat64);
  for (int64_t s = 0; s < 9; ++s) {
    const at::Tensor unit = u.clone();
    unit.select(1, s).fill_(1);
    const at::Tensor want = long_convolution_naive(unit, k).sum(1)[0];
    EXPECT_LT(relative_difference(strided.grad()[0].select(0, s), want), 1e-12) << s;
  }
}

/// y and the gradients of u and the kernel for a fixed cotangent.
std::vector<at::Tensor> convolution_results(at::Tensor u, at::Tensor k) {
  u = u.detach().clone().requires_grad_();
  k = k.detach().clone().requires_grad_();
  const at::Tensor y = long_convolution(u, k);
  y.backward(torch::cos(torch::arange(y.numel(), torch::kFloat64)).view_as(y).to(y.scalar_type()));
  return {y.detach(), u.grad(), k.grad()};
}

TEST(LongConvolution, InFloat32BlocksEqualsDoublePrecisionWhateverTheBlocks) {
  torch::manual_seed(4);
  const std::vector<std::vector<int64_t>> shapes = {{1, 1, 1}, {5, 37, 4}, {19, 600, 8}, {3, 700, 300}};  // whole batch, batches, slices
  for (const auto& shape : shapes) {
    const at::Tensor u = torch::randn(shape), k = torch::randn({2, shape[2], shape[1]});
    const auto got = convolution_results(u, k), want = convolution_results(u.to(torch::kFloat64), k.to(torch::kFloat64));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(relative_difference(got[i], want[i]), 1e-5) << u.sizes() << " result " << i;
  }
}

TEST(LongConvolution, InFloat32IsTheSameWithOneThreadAndTwo) {
  torch::manual_seed(5);
  const at::Tensor u = torch::randn({64, 600, 8}), k = torch::randn({1, 8, 600});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = convolution_results(u, k);
  at::set_num_threads(2);
  const auto two = convolution_results(u, k);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_LT(relative_difference(two[i], one[i].to(torch::kFloat64)), 1e-6) << i;
}

TEST(LongConvolution, RefusesAKernelLongerThanTheInput) {
  EXPECT_ANY_THROW(long_convolution(torch::zeros({1, 4, 2}), torch::zeros({1, 2, 5})));
  EXPECT_ANY_THROW(long_convolution(torch::zeros({1, 4, 2}), torch::zeros({3, 2, 4})));
}

TEST(FftLength, IsEvenWithSmallFactorsAndNotBelowTheMinimum) {
  EXPECT_EQ(fft_length(1), 2);
  EXPECT_EQ(fft_length(2048), 2048);
  EXPECT_EQ(fft_length(2049), 2160);
  EXPECT_EQ(fft_length(34), 36);
}

}  // namespace
}  // namespace spt::models
