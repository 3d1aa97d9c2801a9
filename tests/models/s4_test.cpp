#include "models/s4.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "models/kernels/dense_kernel.h"
#include "models/layers/hippo.h"
#include "models/ssm_dense.h"

namespace spt::models {
namespace {

double s4_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.detach().to(torch::kFloat64);
  return (a.detach().to(torch::kFloat64) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

S4Parameters some_s4(int64_t channels, int64_t copies, int64_t pairs, int64_t directions) {
  torch::manual_seed(7);
  const auto options = torch::dtype(torch::kFloat64);
  return {torch::randn({channels}, options) * 0.5 - 3,  torch::randn({copies, pairs}, options) * 0.3 - 0.7,
          torch::randn({copies, pairs}, options) * 5,   torch::randn({1, copies, pairs, 2}, options),
          torch::randn({1, copies, pairs, 2}, options), torch::randn({directions, channels, pairs, 2}, options)};
}

S4Options small_s4(int64_t l_max) {
  S4Options options;
  options.d_model = 4;
  options.d_state = 8;
  options.n_ssm = 2;
  options.l_max = l_max;
  return options;
}

std::shared_ptr<S4StateSpace> drawn_s4(const S4Options& options, at::ScalarType dtype = torch::kFloat64) {
  auto ssm = std::make_shared<S4StateSpace>(options);
  ssm->reset_parameters(Rng(4).stream("init"), "");
  ssm->to(dtype);
  return ssm;
}

void copy_state(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  auto parameters = to.named_parameters(), buffers = to.named_buffers();
  for (const auto& parameter : from.named_parameters()) parameters[parameter.key()].copy_(parameter.value());
  for (const auto& buffer : from.named_buffers()) buffers[buffer.key()].copy_(buffer.value());
}

int64_t kernel_length(const torch::nn::Module& ssm) { return ssm.named_buffers()["kernel_length"].item<int64_t>(); }

TEST(S4Kernel, MatchesNaiveRecurrenceForEvenAndOddPeriods) {
  for (const int64_t period : {1, 2, 3, 8, 17, 40})
    for (const int64_t directions : {1, 2}) {
      const S4Parameters p = some_s4(6, 3, 4, directions);
      for (const int64_t length : {int64_t{1}, (period + 1) / 2, period})
        EXPECT_LT(s4_difference(s4_kernel(p, period, length), s4_kernel_naive(p, period, length)), 1e-9) << period << " " << length;
    }
}

TEST(S4Kernel, OfTheTransformedCIsThatOfTheRecurrence) {
  S4Parameters p = some_s4(4, 2, 3, 2);
  const at::Tensor want = s4_kernel_naive(p, 0, 24);
  EXPECT_GT(s4_difference(s4_kernel(p, 24, 24), want), 1e-4);  // without the transformation it is another one
  p.C = p.C - s4_power_product(p, 24);
  EXPECT_LT(s4_difference(s4_kernel(p, 24, 24), want), 1e-10);
  p.C = p.C + s4_power_product(p, 24);
  EXPECT_LT(s4_difference(s4_kernel(p, 48, 24), want), 1e-10);
}

TEST(S4Kernel, IsTheSameInSeveralBlocksOfChannels) {
  constexpr int64_t kPeriod = 40000, kPairs = 30;  // one channel fills a block
  const S4Parameters all = some_s4(3, 3, kPairs, 1);
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& t : {all.log_dt, all.inv_w_real, all.w_imag, all.P, all.B, all.C}) leaves.push_back(t.clone().requires_grad_());
  const at::Tensor K = s4_kernel({leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], leaves[5]}, kPeriod, kPeriod);
  const at::Tensor cotangent = torch::randn_like(K);
  (K * cotangent).sum().backward();
  for (int64_t h = 0; h < 3; ++h) {
    std::vector<at::Tensor> one = {all.log_dt.narrow(0, h, 1), all.inv_w_real.narrow(0, h, 1), all.w_imag.narrow(0, h, 1),
                                   all.P.narrow(1, h, 1),      all.B.narrow(1, h, 1),          all.C.narrow(1, h, 1)};
    for (at::Tensor& t : one) t = t.clone().requires_grad_();
    const at::Tensor k = s4_kernel({one[0], one[1], one[2], one[3], one[4], one[5]}, kPeriod, kPeriod);
    EXPECT_LT(s4_difference(K.narrow(1, h, 1), k), 1e-12);
    (k * cotangent.narrow(1, h, 1)).sum().backward();
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_LT(s4_difference(leaves[i].grad().narrow(i < 3 ? 0 : 1, h, 1), one[i].grad()), 1e-10) << i;
  }
}

TEST(S4Kernel, InFloat32IsNearTheExactOne) {
  for (const auto& [state, length, tolerance] : {std::tuple{256, 4000, 1e-3}, {64, 1024, 1e-4}, {64, 4096, 1e-4}, {8, 16384, 1e-4}}) {
    S4Options options;
    options.d_model = 8;
    options.n_ssm = 2;
    options.d_state = state;
    options.l_max = length;
    const auto single = drawn_s4(options, torch::kFloat32), exact = drawn_s4(options);
    EXPECT_LT(s4_difference(single->kernel(length), exact->kernel(length)), tolerance) << state << " " << length;
  }
}

TEST(S4Kernel, HasTheSameGradientsInFloat32AsInFloat64) {  // the steps of float32 are written apart
  for (const int64_t period : {3, 16, 37, 500})
    for (const int64_t directions : {1, 2}) {
      const S4Parameters p = some_s4(10, 5, 6, directions);
      at::Tensor value[2], cotangent;
      std::vector<at::Tensor> gradients[2];
      for (const bool exact : {true, false}) {
        std::vector<at::Tensor> in;
        for (const at::Tensor& t : {p.log_dt, p.inv_w_real, p.w_imag, p.P, p.B, p.C})
          in.push_back(t.to(torch::kFloat32).to(exact ? torch::kFloat64 : torch::kFloat32).requires_grad_());
        value[exact] = s4_kernel({in[0], in[1], in[2], in[3], in[4], in[5]}, period, period);
        if (exact) cotangent = torch::randn_like(value[1]);
        (value[exact] * cotangent.to(value[exact].scalar_type())).sum().backward();
        for (const at::Tensor& t : in) gradients[exact].push_back(t.grad());
      }
      EXPECT_LT(s4_difference(value[0], value[1]), 1e-4) << period;
      for (size_t i = 0; i < gradients[0].size(); ++i)
        EXPECT_LT(s4_difference(gradients[0][i], gradients[1][i]), 1e-3) << period << " " << directions << " tensor " << i;
    }
}

TEST(DenseKernel, MatchesNaiveRecurrence) {
  torch::manual_seed(7);
  const auto options = torch::dtype(torch::kFloat64);
  const DenseParameters p = {torch::randn({4}, options) * 0.5 - 3, torch::randn({2, 6, 6}, options) * 0.4 - torch::eye(6, options),
                             torch::randn({2, 6}, options), torch::randn({2, 4, 6}, options)};
  for (const int64_t length : {1, 2, 3, 7, 16, 33, 100})
    EXPECT_LT(s4_difference(dense_kernel(p, length), dense_kernel_naive(p, length)), 1e-10) << length;
}

TEST(HippoLegs, IsTheSameSystemInBothForms) {
  const HippoLegs dense = hippo_legs(8);
  const HippoLegsNplr nplr = hippo_legs_nplr(8);
  const at::Tensor log_dt = torch::tensor({-3.0}, torch::kFloat64);
  const auto pair = [](const at::Tensor& x) { return torch::stack({x, torch::zeros_like(x)}, -1).view({1, 1, -1, 2}); };
  // The row B^T of the dense system is conj(B), which is real here.
  const S4Parameters p = {log_dt,
                          torch::log(-torch::real(nplr.w)).unsqueeze(0),
                          torch::imag(nplr.w).unsqueeze(0),
                          pair(nplr.P),
                          pair(nplr.P * std::sqrt(2.0)),
                          pair(nplr.P * std::sqrt(2.0))};
  const at::Tensor want = dense_kernel({log_dt, dense.A.unsqueeze(0), dense.B.unsqueeze(0), dense.B.view({1, 1, 8})}, 50);
  EXPECT_LT(s4_difference(s4_kernel_naive(p, 0, 50), want), 1e-10);
}

TEST(S4StateSpace, RewritesCOnceForLMax) {
  const auto ssm = drawn_s4(small_s4(20));
  const at::Tensor C = ssm->named_parameters()["C"], before = C.detach().clone();
  EXPECT_EQ(kernel_length(*ssm), 0);
  const at::Tensor first = ssm->kernel(7).detach(), stored = C.detach().clone();
  EXPECT_EQ(kernel_length(*ssm), 20);
  EXPECT_GT(s4_difference(stored, before), 1e-3);
  EXPECT_TRUE(torch::equal(ssm->kernel(7), first));
  ssm->kernel(20);
  EXPECT_TRUE(torch::equal(C, stored));
}

TEST(S4StateSpace, DoublesForALongerKernelAndKeepsItsTaps) {
  const auto ssm = drawn_s4(small_s4(0));
  const at::Tensor first = ssm->kernel(12).detach();
  const at::Tensor longer = ssm->kernel(30).detach();
  EXPECT_EQ(kernel_length(*ssm), 48);
  EXPECT_LT(s4_difference(longer.narrow(2, 0, 12), first), 1e-10);
}

TEST(S4StateSpace, IsNotRewrittenAfterItsStateWasCopied) {
  const auto from = drawn_s4(small_s4(20)), to = drawn_s4(small_s4(16));
  const at::Tensor want = from->kernel(16).detach();
  copy_state(*from, *to);
  EXPECT_TRUE(torch::equal(to->kernel(16), want));
  EXPECT_EQ(kernel_length(*to), 20);
  const auto used = drawn_s4(small_s4(16));
  used->kernel(16);  // what it knows of its own length is out of date after the copy
  copy_state(*from, *used);
  EXPECT_TRUE(torch::equal(used->kernel(16), want));
}

TEST(S4StateSpace, TrainsTheSameAfterAnEvaluation) {
  at::Tensor gradient[2];
  for (const bool evaluated : {false, true}) {
    const auto ssm = drawn_s4(small_s4(20));
    if (evaluated) {
      const torch::NoGradGuard no_grad;
      ssm->kernel(5);
    }
    ssm->kernel(20).square().sum().backward();
    gradient[evaluated] = ssm->named_parameters()["C"].grad();
  }
  EXPECT_TRUE(torch::equal(gradient[0], gradient[1]));
}

TEST(S4StateSpace, KeepsAnIntegerLengthInAnyPrecision) {
  const auto ssm = drawn_s4(small_s4(20));
  EXPECT_EQ(ssm->named_buffers()["kernel_length"].scalar_type(), torch::kInt64);
  ssm->kernel(20);
  ssm->to(torch::kFloat32);
  EXPECT_EQ(ssm->named_buffers()["kernel_length"].scalar_type(), torch::kInt64);
  EXPECT_EQ(kernel_length(*ssm), 20);
  ssm->reset_parameters(Rng(4).stream("init"), "");
  EXPECT_EQ(kernel_length(*ssm), 0);
}

TEST(S4Body, TakesTheLongestRowAsTheLengthOfItsKernels) {
  const Architecture& s4 = find_architecture("s4");
  const OptionMap options = complete(s4.options, {{"n_layers", int64_t{1}}, {"d_model", int64_t{4}}, {"d_state", int64_t{8}}}, "s4");
  const auto body = s4.build_body(options, {.vocabulary = 5, .max_length = 50}, 0);
  body->reset_parameters(Rng(4).stream("init"), "body.");
  body->forward(torch::randn({2, 9, 4}), {});
  EXPECT_EQ(body->named_buffers()["layers.0.ssm.kernel_length"].item<int64_t>(), 50);
}

TEST(RandomMeasure, DrawsEachStateMatrixApart) {
  S4Options options = small_s4(20);
  options.measure = "random";
  const auto ssm = drawn_s4(options);
  for (const char* name : {"w_imag", "P"}) {
    const at::Tensor value = ssm->named_parameters()[name].detach();
    const int64_t axis = name == std::string("P") ? 1 : 0;
    EXPECT_GT(s4_difference(value.select(axis, 0), value.select(axis, 1)), 1e-2) << name;
  }
  SsmDenseOptions dense;
  dense.measure = "random";
  SsmDenseStateSpace full(dense);
  full.reset_parameters(Rng(4).stream("init"), "");
  const at::Tensor A = full.named_parameters()["A"].detach();
  EXPECT_NEAR(A.diagonal(0, 1, 2).mean().item<double>(), -1, 0.02);
  EXPECT_NEAR(A.tril(-1).square().sum().item<double>() / static_cast<double>(A.numel()) * 2, 1.0 / 64, 1e-3);
}

TEST(Dropout, TiedDrawsOnceAFeatureOfARow) {
  torch::manual_seed(1);
  const at::Tensor y = drop(torch::ones({8, 16, 32}), 0.25, true, /*tied=*/true);
  EXPECT_TRUE(torch::equal(y, y.narrow(1, 0, 1).expand_as(y)));
  EXPECT_NEAR((y == 0).to(torch::kFloat32).mean().item<double>(), 0.25, 0.1);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_TRUE(torch::equal(drop(y, 0.25, false, true), y));
}

}  // namespace
}  // namespace spt::models
