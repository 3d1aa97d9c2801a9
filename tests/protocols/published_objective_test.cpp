#include "protocols/published_objective.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace spt::protocols::published {
namespace {

TEST(PublishedObjective, MaskedTokensKeepTargetsOfHiddenRealPositionsAlone) {
  const at::Tensor tokens = torch::tensor({{5, 6, 7, 1}});
  const Pair pair = masked_tokens(tokens, torch::tensor({3}), torch::tensor({{1, 0, 1, 1}}), 0, kIgnoredClass);
  EXPECT_TRUE(torch::equal(pair.network_input, torch::tensor({{0, 6, 0, 1}})));
  EXPECT_TRUE(torch::equal(pair.target, torch::tensor({{5, -100, 7, -100}})));
}

TEST(PublishedObjective, CausalTokensIgnoreTheLastRealPositionAndPads) {
  const Pair pair = causal_tokens(torch::tensor({{5, 6, 7, 1}}), torch::tensor({3}), kIgnoredClass);
  EXPECT_TRUE(torch::equal(pair.target, torch::tensor({{6, 7, -100, -100}})));
}

TEST(PublishedObjective, CausalValuesMayCountTheLastAsPublished) {
  const at::Tensor x = torch::tensor({1.0, 2.0, 3.0}).reshape({1, 3, 1});
  EXPECT_TRUE(torch::equal(causal_values(x, kIgnoredValue).target.flatten(), torch::tensor({2.0, 3.0, -10000.0})));
  EXPECT_TRUE(torch::equal(causal_values(x, kIgnoredValue, true).target.flatten(), torch::tensor({2.0, 3.0, 0.0})));
}

TEST(PublishedObjective, LevelsAreExactForAll256) {
  const at::Tensor image = torch::arange(256).to(torch::kUInt8).reshape({16, 16});
  const Pair pair = masked_levels(image, torch::ones({1, 256}, torch::kInt64), kIgnoredClass);
  EXPECT_TRUE(torch::equal(pair.target.flatten(), torch::arange(256)));
}

TEST(PublishedObjective, NothingCountedScoresOneWithANanLoss) {
  const at::Tensor logits = torch::zeros({1, 2, 3}, torch::kFloat64), target = torch::full({1, 2}, -100);
  EXPECT_EQ(accuracy(logits, target), 1.0);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, target).item<double>()));
}

}  // namespace
}  // namespace spt::protocols::published
