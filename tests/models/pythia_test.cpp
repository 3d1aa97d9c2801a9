#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "models/architecture.h"
#include "models/layers/positions.h"

namespace spt::models {
namespace {

using testing::HasSubstr;

OptionMap pythia_of(const OptionMap& given) { return complete(find_architecture("pythia").options, given, "pythia"); }

std::shared_ptr<Body> drawn_body(const OptionMap& given) {
  auto body = find_architecture("pythia").build_body(pythia_of(given), {.vocabulary = 9}, 0);
  body->to(torch::kFloat64);
  body->reset_parameters(Rng(4).stream("init"), "body.");
  return body;
}

std::string refusal(const OptionMap& given) {
  try {
    find_architecture("pythia").validate(pythia_of(given));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RotaryHalves, TurnFeatureMWithFeatureMOfTheOtherHalf) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({1, 5, 2, 6}, torch::kFloat64);
  const at::Tensor y = Rotary(4, RotaryPairs::kHalves).rotate(x);
  for (int64_t p = 0; p < 5; ++p)
    for (int64_t m = 0; m < 2; ++m) {
      const double angle = static_cast<double>(p) * std::pow(10000.0, -2.0 * static_cast<double>(m) / 4);
      const auto at = [&](const at::Tensor& t, int64_t feature) { return t[0][p][1][feature].item<double>(); };
      EXPECT_NEAR(at(y, m), at(x, m) * std::cos(angle) - at(x, m + 2) * std::sin(angle), 1e-12);
      EXPECT_NEAR(at(y, m + 2), at(x, m) * std::sin(angle) + at(x, m + 2) * std::cos(angle), 1e-12);
    }
  EXPECT_TRUE(torch::equal(y.narrow(-1, 4, 2), x.narrow(-1, 4, 2)));
}

TEST(RotaryNeighbours, OfTheFirstFeaturesLeaveTheOthers) {
  torch::manual_seed(2);
  const at::Tensor x = torch::randn({2, 7, 3, 10}, torch::kFloat64);
  const at::Tensor y = Rotary(4).rotate(x);
  EXPECT_TRUE(torch::equal(y.narrow(-1, 0, 4), Rotary(4).rotate(x.narrow(-1, 0, 4))));
  EXPECT_TRUE(torch::equal(y.narrow(-1, 4, 6), x.narrow(-1, 4, 6)));
}

TEST(Pythia, HasThePublishedNumberOfParametersInItsPreset) {
  const Architecture& architecture = find_architecture("pythia");
  for (const auto& [name, options] : architecture.sizes) {
    if (name != "pythia-70m") continue;
    int64_t count = 0;
    for (const auto& parameter : architecture.build_body(pythia_of(options), {.vocabulary = 9}, 0)->parameters())
      count += parameter.numel();
    EXPECT_EQ(count, 18'915'328);  // arXiv:2304.01373 table 1, non-embedding parameters
    return;
  }
  FAIL() << "no preset pythia-70m";
}

TEST(Pythia, AddsBothBranchesOfAParallelLayerToItsInput) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  const at::Tensor x = torch::randn({2, 6, 16}, torch::kFloat64);
  const OptionMap one = {{"n_layers", int64_t{1}}, {"d_model", int64_t{16}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{24}}};
  const auto body_with = [&](bool attention, bool feed_forward, bool parallel) {
    OptionMap options = one;
    options["parallel_residual"] = parallel;
    const auto body = drawn_body(options);
    auto parameters = body->named_parameters();
    if (!attention) parameters["layers.0.attention.output.weight"].zero_();
    if (!feed_forward) parameters["layers.0.feed_forward.down.weight"].zero_();
    parameters["layers.0.norm2.bias"].fill_(0.5);
    return body->forward(x, {});
  };
  EXPECT_FALSE(torch::allclose(body_with(true, true, true), body_with(true, true, false)));
  EXPECT_TRUE(torch::equal(body_with(false, true, true), body_with(false, true, false)));
  EXPECT_TRUE(torch::equal(body_with(true, false, true), body_with(true, false, false)));
}

TEST(Pythia, StartsAsPublished) {
  const auto body = drawn_body({{"d_model", int64_t{64}}});
  for (const auto& parameter : body->named_parameters()) {
    const at::Tensor& value = parameter.value();
    switch (body->role(parameter.key())) {
      case ParameterRole::kMatrix:
        EXPECT_NEAR(value.std().item<double>(), 0.02, 0.002) << parameter.key();
        break;
      case ParameterRole::kBias:
        EXPECT_EQ(value.abs().max().item<double>(), 0) << parameter.key();
        break;
      default:
        EXPECT_EQ(body->role(parameter.key()), ParameterRole::kNorm) << parameter.key();
    }
  }
}

TEST(Pythia, RefusesOptionsThatCannotBe) {
  EXPECT_THAT(refusal({{"causal", false}}), HasSubstr("causal = false is not possible"));
  EXPECT_THAT(refusal({{"n_heads", int64_t{3}}}), HasSubstr("n_heads = 3 does not divide d_model = 64"));
  EXPECT_THAT(refusal({{"d_model", int64_t{48}}}), HasSubstr("a head of 12 features turns 3"));
  EXPECT_THAT(refusal({{"d_model", int64_t{8}}}), HasSubstr("a head of 2 features turns 0"));
  EXPECT_EQ(refusal({{"d_model", int64_t{8}}, {"rotary_fraction", 0.0}}), "");
  EXPECT_EQ(refusal({{"d_model", int64_t{48}}, {"rotary_fraction", 0.5}}), "");
}

}  // namespace
}  // namespace spt::models
