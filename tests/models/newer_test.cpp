#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/architecture.h"

// lstm, long-conv, lru, mamba, s5: roles, initial values, options.
namespace spt::models {
namespace {

using ::testing::HasSubstr;

OptionMap newer_options(const std::string& name, const OptionMap& given = {}) {
  return complete(find_architecture(name).options, given, name);
}

std::shared_ptr<Body> newer_body(const std::string& name, const OptionMap& given = {}, int64_t max_length = 32) {
  auto body = find_architecture(name).build_body(newer_options(name, given), {.vocabulary = 20, .max_length = max_length}, 0);
  body->reset_parameters(Rng(3).stream("init"), "body.");
  return body;
}

std::string newer_refusal(const std::string& name, const OptionMap& given) {
  try {
    find_architecture(name).validate(newer_options(name, given));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::map<std::string, ParameterRole> roles_of_a_layer(const std::string& name) {
  const auto body = newer_body(name, {{"n_layers", int64_t{1}}});
  std::map<std::string, ParameterRole> roles;
  for (const auto& parameter : body->named_parameters())
    if (parameter.key().find("norm") == std::string::npos) roles[parameter.key().substr(9)] = body->role(parameter.key());
  return roles;
}

using enum ParameterRole;

TEST(NewerArchitectures, SayWhichParametersAreAStateSpace) {
  using Roles = std::map<std::string, ParameterRole>;
  EXPECT_EQ(roles_of_a_layer("long-conv"),
            (Roles{{"ssm.kernel", kStateW}, {"ssm.D", kStateD}, {"output.weight", kMatrix}, {"output.bias", kBias}}));
  EXPECT_EQ(roles_of_a_layer("lru"), (Roles{{"ssm.nu_log", kStateA},
                                            {"ssm.theta_log", kStateA},
                                            {"ssm.gamma_log", kStateB},
                                            {"ssm.B", kStateB},
                                            {"ssm.C", kStateC},
                                            {"ssm.D", kStateD},
                                            {"output.weight", kMatrix},
                                            {"output.bias", kBias}}));
  EXPECT_EQ(roles_of_a_layer("s5"), (Roles{{"ssm.lambda_real", kStateA},
                                           {"ssm.lambda_imag", kStateA},
                                           {"ssm.log_dt", kStateDt},
                                           {"ssm.B", kStateB},
                                           {"ssm.C", kStateC},
                                           {"ssm.D", kStateD},
                                           {"output.weight", kMatrix},
                                           {"output.bias", kBias}}));
  EXPECT_EQ(roles_of_a_layer("mamba"), (Roles{{"in_proj.weight", kMatrix},
                                              {"conv.weight", kMatrix},
                                              {"conv.bias", kBias},
                                              {"x_proj.weight", kMatrix},
                                              {"dt_proj.weight", kMatrix},
                                              {"dt_proj.bias", kStateDt},
                                              {"A_log", kStateA},
                                              {"D", kStateD},
                                              {"out_proj.weight", kMatrix}}));
}

TEST(LongConv, HasNoMoreTapsThanTheTaskHasPositions) {
  const auto taps = [](int64_t l_max, int64_t max_length) {
    return newer_body("long-conv", {{"l_max", l_max}}, max_length)->named_parameters()["layers.0.ssm.kernel"].size(-1);
  };
  EXPECT_EQ(taps(0, 40), 40);
  EXPECT_EQ(taps(100, 40), 40);
  EXPECT_EQ(taps(30, 40), 30);
  EXPECT_EQ(taps(30, 0), 30);
  EXPECT_THROW(taps(0, 0), Error);
}

TEST(LongConv, StartsWithTapsThatFallFasterInLaterChannels) {
  const auto kernel = newer_body("long-conv", {{"d_model", int64_t{64}}}, 400)->named_parameters()["layers.0.ssm.kernel"];
  const auto deviation = [&](int64_t channel, int64_t first) {
    return kernel.narrow(1, channel, 16).narrow(2, first, 40).std().item<double>();
  };
  EXPECT_NEAR(deviation(0, 0), 0.02, 0.002);
  EXPECT_NEAR(deviation(0, 360) / deviation(0, 0), 0.27, 0.1);  // exp(-0.95 32^(8/64))
  EXPECT_LT(deviation(48, 360), 1e-5);
  const auto random = newer_body("long-conv", {{"init", std::string("random")}}, 400)->named_parameters()["layers.0.ssm.kernel"];
  EXPECT_NEAR(random.std().item<double>(), 0.002, 1e-4);
}

TEST(LongConv, IgnoresTapsBelowTheThreshold) {
  const torch::NoGradGuard no_grad;
  const auto body = newer_body("long-conv", {{"n_layers", int64_t{1}}, {"squash", 0.5}}, 10);
  const at::Tensor x = torch::randn({2, 10, 64}), before = body->forward(x, {});
  body->named_parameters()["layers.0.ssm.kernel"].fill_(0.499);
  EXPECT_TRUE(torch::equal(body->forward(x, {}), before));
  body->named_parameters()["layers.0.ssm.kernel"].fill_(-0.6);
  EXPECT_FALSE(torch::equal(body->forward(x, {}), before));
}

TEST(Lru, StartsOnTheRingWithUnitGain) {
  const auto p = newer_body("lru", {{"d_state", int64_t{500}}, {"r_min", 0.6}, {"r_max", 0.8}, {"max_phase", 1.5}})->named_parameters();
  const at::Tensor radius = torch::exp(-torch::exp(p["layers.0.ssm.nu_log"])), phase = torch::exp(p["layers.0.ssm.theta_log"]);
  EXPECT_GE(radius.min().item<double>(), 0.6 - 1e-5);
  EXPECT_LE(radius.max().item<double>(), 0.8 + 1e-5);
  EXPECT_NEAR(radius.square().mean().item<double>(), 0.5, 0.02);  // uniform in area
  EXPECT_NEAR(phase.mean().item<double>(), 0.75, 0.1);
  EXPECT_LE(phase.max().item<double>(), 1.5 + 1e-5);
  EXPECT_TRUE(torch::allclose(torch::exp(p["layers.0.ssm.gamma_log"]), torch::sqrt(1 - radius.square()), 1e-4, 1e-5));
}

TEST(Lru, StartsFiniteOnTheWholeDisc) {
  const auto body = newer_body("lru", {{"d_state", int64_t{2000}}, {"r_min", 0.0}, {"r_max", 1.0}});
  for (const auto& parameter : body->named_parameters()) EXPECT_TRUE(parameter.value().isfinite().all().item<bool>()) << parameter.key();
}

TEST(S5, StartsWithTheEigenvaluesOfHippoInEveryBlock) {
  const auto p = newer_body("s5", {{"d_state", int64_t{16}}, {"blocks", int64_t{2}}})->named_parameters();
  const at::Tensor imaginary = p["layers.0.ssm.lambda_imag"];
  EXPECT_EQ(imaginary.size(0), 8);
  EXPECT_TRUE(torch::equal(imaginary.narrow(0, 0, 4), imaginary.narrow(0, 4, 4)));
  EXPECT_TRUE((imaginary < 0).all().item<bool>());
  EXPECT_TRUE(torch::allclose(p["layers.0.ssm.lambda_real"], torch::full({8}, -0.5)));
  const at::Tensor n = torch::arange(8, torch::kFloat64), root = torch::sqrt(2 * n + 1);  // LegS without its low-rank part
  const at::Tensor normal = -torch::outer(root, root).tril(-1) - torch::diag(n + 1) + torch::outer(root, root) / 2;
  const at::Tensor want = std::get<0>(torch::imag(torch::linalg_eigvals(normal)).sort()).narrow(0, 0, 4);
  EXPECT_TRUE(torch::allclose(imaginary.narrow(0, 0, 4).to(torch::kFloat64), want, 1e-5, 1e-5));
}

TEST(S5, PairsOfConjugatesEqualAllStatesWhereTheReadOutIsReal) {
  const torch::NoGradGuard no_grad;
  const OptionMap options = {{"n_layers", int64_t{1}}, {"d_model", int64_t{6}}, {"d_state", int64_t{8}}};
  OptionMap all = options;
  all["conj_sym"] = false;
  const auto half = newer_body("s5", options), full = newer_body("s5", all);
  const auto from = half->named_parameters();
  auto to = full->named_parameters();
  for (const auto& parameter : from) {
    if (to[parameter.key()].sizes() == parameter.value().sizes()) to[parameter.key()].copy_(parameter.value());
  }
  for (const char* name : {"lambda_real", "lambda_imag", "log_dt", "B", "C"}) {
    const std::string key = std::string("layers.0.ssm.") + name;
    const int64_t axis = name[0] == 'C' ? 2 : 0;
    at::Tensor conjugate = from[key].clone();
    if (name == std::string("lambda_imag")) conjugate.neg_();
    if (name[0] == 'B' || name[0] == 'C') conjugate.select(-1, 1).neg_();
    to[key].copy_(torch::cat({from[key], conjugate}, axis));
  }
  const at::Tensor x = torch::randn({2, 30, 6});
  EXPECT_TRUE(torch::allclose(half->forward(x, {}), full->forward(x, {}), 1e-4, 1e-5));
}

TEST(Mamba, StartsWithStepsInTheirRange) {
  const auto p = newer_body("mamba", {{"d_model", int64_t{256}}, {"dt_min", 0.01}, {"dt_max", 0.02}})->named_parameters();
  const at::Tensor dt = torch::softplus(p["layers.0.dt_proj.bias"]);
  EXPECT_GE(dt.min().item<double>(), 0.01 - 1e-5);
  EXPECT_LE(dt.max().item<double>(), 0.02 + 1e-5);
  EXPECT_TRUE(torch::allclose(torch::exp(p["layers.1.A_log"])[3], torch::arange(1, 17).to(torch::kFloat32), 1e-5, 1e-5));
  EXPECT_LE(p["layers.0.out_proj.weight"].abs().max().item<double>(), 1 / std::sqrt(512.0 * 4) + 1e-6);
}

TEST(NewerArchitectures, RefuseOptionsThatDoNotFitTogether) {
  EXPECT_THAT(newer_refusal("lstm", {{"d_model", int64_t{7}}}), HasSubstr("architecture 'lstm': d_model = 7 is odd"));
  EXPECT_THAT(newer_refusal("lru", {{"r_min", 0.5}, {"r_max", 0.4}}), HasSubstr("r_min = 0.5 is not below r_max = 0.4"));
  EXPECT_THAT(newer_refusal("s5", {{"blocks", int64_t{5}}}), HasSubstr("blocks = 5 does not divide d_state = 64"));
  EXPECT_THAT(newer_refusal("s5", {{"d_state", int64_t{6}}, {"blocks", int64_t{2}}}), HasSubstr("odd"));
  EXPECT_THAT(newer_refusal("s5", {{"dt_min", 0.5}}), HasSubstr("dt_min = 0.5 is above dt_max"));
  EXPECT_THAT(newer_refusal("mamba", {{"dt_min", 0.5}}), HasSubstr("dt_min = 0.5 is above dt_max"));
  EXPECT_THAT(newer_refusal("mamba", {{"causal", false}}), HasSubstr("causal = false"));
  EXPECT_THAT(newer_refusal("long-conv", {{"init", std::string("geometrical")}}), HasSubstr("did you mean 'geometric'"));
}

}  // namespace
}  // namespace spt::models
