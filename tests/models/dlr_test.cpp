#include "models/dlr.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "models/dss.h"
#include "models/kernels/dlr_kernel.h"
#include "models/kernels/dss_kernel.h"

namespace spt::models {
namespace {

using ::testing::HasSubstr;

const auto kDouble = torch::dtype(torch::kFloat64);

/// Largest |a - b| / largest |b|.
double off_by(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.to(torch::kFloat64);
  return (a.to(torch::kFloat64) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

/// Modes as they are at the start: slow, and frequencies all round the circle.
DlrParameters some_dlr(int64_t modes, int64_t channels, int64_t directions) {
  torch::manual_seed(7);
  return {(torch::exp(std::log(1e-4) + std::log(1e3) * torch::rand({modes}, kDouble)) / 2).sqrt(), 6.28 * torch::rand({modes}, kDouble),
          torch::randn({directions, channels, modes, 2}, kDouble)};
}

/// The definition, every term held at once, for autograd.
at::Tensor dense_dlr(const DlrParameters& p, int64_t length) {
  const at::Tensor lambda = torch::complex(-p.lambda_sqrt_neg_real.square(), p.lambda_imag);
  const at::Tensor powers = torch::exp(lambda.unsqueeze(-1) * torch::arange(length, kDouble));  // (N, L)
  return torch::real(torch::matmul(torch::view_as_complex(p.W), powers));
}

std::vector<at::Tensor> leaves_of(std::vector<at::Tensor> values) {
  for (at::Tensor& value : values) value = value.detach().clone().requires_grad_();
  return values;
}

/// Gradients of sum(kernel * cotangent), the same cotangent at each call.
std::vector<at::Tensor> gradients_of(const at::Tensor& kernel, const std::vector<at::Tensor>& leaves) {
  torch::manual_seed(8);
  return torch::autograd::grad({(kernel * torch::randn(kernel.sizes(), kDouble)).sum()}, leaves);
}

TEST(DlrKernel, MatchesNaiveRecurrenceInOneChunkAndInMany) {
  for (const int64_t length : {1, 2, 3, 17, 64, 100, 257})
    for (const int64_t directions : {1, 2}) {
      const DlrParameters p = some_dlr(12, 3, directions);
      EXPECT_LT(off_by(dlr_kernel(p, length), dlr_kernel_naive(p, length)), 1e-12) << length << " " << directions;
    }
  const DlrParameters p = some_dlr(70, 2, 1);
  EXPECT_LT(off_by(dlr_kernel(p, 20000), dlr_kernel_naive(p, 20000)), 1e-11);
}

TEST(DlrKernel, IsWithinTenMillionthsOfFloat64InFloat32) {
  for (const int64_t length : {4096, 16384}) {
    DlrParameters p = some_dlr(64, 2, 1);
    for (at::Tensor* t : {&p.lambda_sqrt_neg_real, &p.lambda_imag, &p.W}) *t = t->to(torch::kFloat32);
    const at::Tensor kernel = dlr_kernel(p, length);
    EXPECT_EQ(kernel.scalar_type(), torch::kFloat32);
    EXPECT_LT(off_by(kernel, dlr_kernel_naive(p, length)), 1e-5) << length;
    const at::Tensor tail = kernel.narrow(2, length - 512, 512), want = dlr_kernel_naive(p, length).narrow(2, length - 512, 512);
    EXPECT_LT(off_by(tail, want), 1e-5) << length;
  }
}

TEST(DlrKernel, HasTheGradientOfTheDefinitionInOneChunkAndInMany) {
  for (const auto& [modes, length] : std::vector<std::pair<int64_t, int64_t>>{{5, 33}, {70, 20000}}) {
    const DlrParameters p = some_dlr(modes, 2, 2);
    const auto leaves = leaves_of({p.lambda_sqrt_neg_real, p.lambda_imag, p.W});
    const auto got = gradients_of(dlr_kernel({leaves[0], leaves[1], leaves[2]}, length), leaves);
    const auto want = gradients_of(dense_dlr({leaves[0], leaves[1], leaves[2]}, length), leaves);
    for (size_t i = 0; i < 3; ++i) EXPECT_LT(off_by(got[i], want[i]), 1e-9) << length << " " << i;
  }
}

TEST(DlrKernel, GivesTheSameGradientOfWWhereModesAreFrozen) {
  const DlrParameters p = some_dlr(5, 2, 2);
  const auto leaves = leaves_of({p.lambda_sqrt_neg_real, p.lambda_imag, p.W});
  const at::Tensor all = gradients_of(dlr_kernel({leaves[0], leaves[1], leaves[2]}, 40), leaves)[2];
  const at::Tensor alone = gradients_of(dlr_kernel({p.lambda_sqrt_neg_real, p.lambda_imag, leaves[2]}, 40), {leaves[2]})[0];
  EXPECT_TRUE(torch::equal(all, alone));
}

TEST(DlrKernel, StaysInFloat32UnderAutocast) {
  DlrParameters p = some_dlr(16, 2, 1);
  for (at::Tensor* t : {&p.lambda_sqrt_neg_real, &p.lambda_imag, &p.W}) *t = t->to(torch::kFloat32).requires_grad_();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor kernel = dlr_kernel(p, 64);
  kernel.sum().backward();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(kernel.scalar_type(), torch::kFloat32);
  EXPECT_LT(off_by(kernel.detach(), dlr_kernel_naive(p, 64)), 1e-5);
  EXPECT_EQ(p.W.grad().scalar_type(), torch::kFloat32);
}

DssParameters some_dss(bool softmax, int64_t directions) {
  torch::manual_seed(9);
  DssParameters p;
  p.log_dt = torch::randn({3}, kDouble) * 0.5 - 3;
  if (softmax) {
    p.lambda = torch::randn({4, 2}, kDouble) * torch::tensor({0.5, 8.0}, kDouble);
    p.lambda[0][0] = 0.4;
    p.lambda[1][0] = -0.4;
  } else {
    p.lambda_log_neg_real = torch::randn({4}, kDouble) * 0.3 - 0.7;
    p.lambda_imag = torch::randn({4}, kDouble) * 8;
  }
  p.W = torch::randn({directions, 3, 4, 2}, kDouble);
  return p;
}

TEST(DssKernel, MatchesNaiveSums) {
  for (const bool softmax : {false, true})
    for (const int64_t length : {1, 2, 3, 16, 31, 64, 100, 257})
      for (const int64_t extra : {0, 1, 40}) {
        DssParameters p = some_dss(softmax, 2);
        p.softmax_length = length + extra;
        EXPECT_LT(off_by(dss_kernel(p, length), dss_kernel_naive(p, length)), 1e-11) << softmax << " " << length << " " << extra;
      }
}

TEST(DssKernel, StaysFiniteWithAModeThatGrows) {
  DssParameters p = some_dss(true, 1);
  p.lambda[0][0] = 90.0;  // e^(x L) overflows
  for (const auto precision : {torch::kFloat32, torch::kFloat64}) {
    for (at::Tensor* t : {&p.log_dt, &p.lambda, &p.W}) *t = t->to(precision).detach().requires_grad_();
    const at::Tensor kernel = dss_kernel(p, 300);
    EXPECT_TRUE(kernel.isfinite().all().item<bool>());
    EXPECT_LT(off_by(kernel.detach(), dss_kernel_naive(p, 300)), precision == torch::kFloat32 ? 1e-4 : 1e-10);
    kernel.sum().backward();
    for (const at::Tensor* t : {&p.log_dt, &p.lambda, &p.W}) EXPECT_TRUE(t->grad().isfinite().all().item<bool>());
  }
}

/// The published formula, every term held at once, for autograd: the shift of growing modes is a constant.
at::Tensor dense_softmax_dss(const std::vector<at::Tensor>& in, int64_t length) {
  const at::Tensor lambda = torch::view_as_complex(in[1]), grows = (torch::real(lambda) > 0).to(torch::kFloat64).detach();
  const at::Tensor x = in[0].exp().unsqueeze(-1) * lambda, falling = x * (1 - 2 * grows);
  const at::Tensor q = lambda * (torch::exp(falling * length) - 1), reciprocal = torch::conj(q) / (q * torch::conj(q) + 1e-7);
  const at::Tensor powers =
      torch::exp(x.unsqueeze(-1) * torch::arange(length, kDouble) - (x * (grows * (length - 1))).detach().unsqueeze(-1));
  const at::Tensor weight = torch::view_as_complex(in[2]) * ((torch::exp(falling) - 1) * reciprocal);
  return torch::real((weight.unsqueeze(-1) * powers).sum(2));
}

TEST(DssKernel, HasThePublishedGradientWhereModesGrow) {
  const DssParameters p = some_dss(true, 2);
  const auto leaves = leaves_of({p.log_dt, p.lambda, p.W});
  const at::Tensor fast = dss_kernel({leaves[0], {}, {}, leaves[1], leaves[2]}, 37), dense = dense_softmax_dss(leaves, 37);
  EXPECT_LT(off_by(fast.detach(), dense.detach()), 1e-11);
  const auto got = gradients_of(fast, leaves), want = gradients_of(dense, leaves);
  for (size_t i = 0; i < 3; ++i) EXPECT_LT(off_by(got[i], want[i]), 1e-9) << i;
}

TEST(DssKernel, IsWithinTenThousandthsOfFloat64InFloat32) {
  for (const bool softmax : {false, true}) {
    DssParameters p = some_dss(softmax, 2);
    for (at::Tensor* t : {&p.log_dt, &p.lambda_log_neg_real, &p.lambda_imag, &p.lambda, &p.W})
      if (t->defined()) *t = t->to(torch::kFloat32);
    EXPECT_LT(off_by(dss_kernel(p, 4096), dss_kernel_naive(p, 4096)), 1e-4) << softmax;
  }
}

std::map<std::string, ParameterRole> roles_of(StateSpace& ssm) {
  std::map<std::string, ParameterRole> roles;
  for (const auto& parameter : ssm.named_parameters()) roles[parameter.key()] = ssm.role(parameter.key());
  return roles;
}

TEST(DlrStateSpace, HasRatesOfItsOwnForBothPartsOfLambdaAndForW) {
  DlrStateSpace dlr(DlrOptions{});
  EXPECT_EQ(roles_of(dlr), (std::map<std::string, ParameterRole>{{"lambda_sqrt_neg_real", ParameterRole::kStateReal},
                                                                 {"lambda_imag", ParameterRole::kStateImag},
                                                                 {"W", ParameterRole::kStateW},
                                                                 {"D", ParameterRole::kStateD}}));
}

TEST(DssStateSpace, HasTheRolesOfItsVersion) {
  DssOptions options;
  DssStateSpace exponential(options, 0);
  EXPECT_EQ(roles_of(exponential), (std::map<std::string, ParameterRole>{{"log_dt", ParameterRole::kStateDt},
                                                                         {"lambda_log_neg_real", ParameterRole::kStateReal},
                                                                         {"lambda_imag", ParameterRole::kStateImag},
                                                                         {"W", ParameterRole::kStateW},
                                                                         {"D", ParameterRole::kStateD}}));
  options.version = "softmax";
  DssStateSpace softmax(options, 0);
  EXPECT_EQ(roles_of(softmax), (std::map<std::string, ParameterRole>{{"log_dt", ParameterRole::kStateDt},
                                                                     {"lambda", ParameterRole::kStateA},
                                                                     {"W", ParameterRole::kStateW},
                                                                     {"D", ParameterRole::kStateD}}));
}

TEST(DlrStateSpace, StartsWithSlowModesAllRoundTheCircle) {
  DlrOptions options;
  options.d_state = 512;
  DlrStateSpace single(options), twice(options);
  twice.to(torch::kFloat64);
  for (DlrStateSpace* ssm : {&single, &twice}) ssm->reset_parameters(Rng(4).stream("init"), "");
  const auto values = single.named_parameters(), doubles = twice.named_parameters();
  for (const auto& value : values) EXPECT_TRUE(torch::equal(value.value().to(torch::kFloat64), doubles[value.key()])) << value.key();
  const at::Tensor log_dt = torch::log(2 * values["lambda_sqrt_neg_real"].square());
  EXPECT_GE(log_dt.min().item<double>(), std::log(1e-4) - 1e-4);
  EXPECT_LE(log_dt.max().item<double>(), std::log(1e-1) + 1e-4);
  EXPECT_NEAR(log_dt.mean().item<double>(), (std::log(1e-4) + std::log(1e-1)) / 2, 5 * std::log(1e3) / std::sqrt(12.0 * 512));
  EXPECT_NEAR(values["lambda_imag"][384].item<double>(), 1.5 * M_PI, 1e-6);
  EXPECT_NEAR(values["W"].std().item<double>() * 512, 1, 0.02);
}

TEST(DssStateSpace, StartsFromHippoUnlessToldNotTo) {
  for (const char* version : {"exp", "softmax"})
    for (const char* measure : {"legs", "random"}) {
      DssOptions options;
      options.version = version;
      options.measure = measure;
      options.d_state = 8;
      DssStateSpace ssm(options, 0);
      ssm.reset_parameters(Rng(4).stream("init"), "");
      const auto values = ssm.named_parameters();
      const bool exponential = options.version == "exp";
      const at::Tensor real = exponential ? -values["lambda_log_neg_real"].exp() : values["lambda"].select(1, 0);
      const at::Tensor imaginary = exponential ? values["lambda_imag"] : values["lambda"].select(1, 1);
      EXPECT_LT((real + 0.5).abs().max().item<double>(), 1e-6);
      EXPECT_GT(imaginary.min().item<double>(), 0);
      if (options.measure != "legs") continue;
      EXPECT_NEAR(imaginary.max().item<double>() * M_PI / (16 * 16), 1, 0.3);  // of order n it grows as n^2 / pi
    }
}

/// Output of one layer for a row of 12 in a batch that is padded to `length`.
at::Tensor padded_output(const char* softmax_over, int64_t length) {
  const OptionMap given = {{"n_layers", int64_t{1}}, {"d_model", int64_t{4}},
                           {"d_state", int64_t{3}},  {"version", std::string("softmax")},
                           {"dt_min", 0.1},          {"softmax_over", std::string(softmax_over)}};
  const Architecture& dss = find_architecture("dss");
  const auto body = dss.build_body(complete(dss.options, given, "dss"), {.vocabulary = 5, .max_length = 40}, 0);
  body->to(torch::kFloat64);
  body->reset_parameters(Rng(1).stream("init"), "body.");
  torch::manual_seed(3);
  const at::Tensor x = torch::constant_pad_nd(torch::randn({1, 12, 4}, kDouble), {0, 0, 0, length - 12});
  return body->forward(x, real_positions(torch::tensor({12}, torch::kInt64), length)).narrow(1, 0, 12).detach();
}

TEST(Dss, SoftmaxDependsOnThePaddingOnlyAsPublished) {
  EXPECT_LT(off_by(padded_output("longest", 12), padded_output("longest", 30)), 1e-12);
  EXPECT_GT(off_by(padded_output("batch", 12), padded_output("batch", 30)), 1e-3);
}

TEST(DlrAndDss, RefuseARangeOfStepsThatIsEmpty) {
  for (const char* name : {"dlr", "dss"}) {
    const Architecture& architecture = find_architecture(name);
    try {
      architecture.validate(complete(architecture.options, {{"dt_min", 0.5}}, name));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("architecture '") + name + "': dt_min = 0.5 is above dt_max = 0.1"));
    }
  }
}

}  // namespace
}  // namespace spt::models
