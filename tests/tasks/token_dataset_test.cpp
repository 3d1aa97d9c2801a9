#include "tasks/token_dataset.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace spt::tasks {
namespace {

std::shared_ptr<TokenRows> three_rows() {
  auto rows = std::make_shared<TokenRows>();
  rows->add(std::vector<int64_t>{7, 8, 3}, 1);
  rows->add(std::vector<int64_t>{3}, 0);
  rows->add(std::vector<int64_t>{9, 65535, 9, 9, 3}, 2);
  return rows;
}

TEST(TokenDataset, PadsOnTheRightToTheLongestOfTheBatch) {
  const TokenDataset dataset(three_rows(), {2, 0, 1}, 100);
  const Batch batch = dataset.batch(std::vector<int64_t>{1, 2});
  EXPECT_TRUE(torch::equal(batch.tokens, torch::tensor({{7, 8, 3}, {3, 1, 1}}, torch::kInt64))) << batch.tokens;
  EXPECT_TRUE(torch::equal(batch.lengths, torch::tensor({3, 1}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(batch.labels, torch::tensor({1, 0}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(batch.example_ids, torch::tensor({100, 101}, torch::kInt64)));
  EXPECT_FALSE(batch.values.defined());
  EXPECT_EQ(dataset.batch(std::vector<int64_t>{0}).tokens[0][1].item<int64_t>(), 65535);
}

TEST(TokenDataset, FollowsItsOrder) {
  const TokenDataset dataset(three_rows(), {2, 0}, 0);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.length(0), 5);
  EXPECT_EQ(dataset.label(0), 2);
  EXPECT_EQ(dataset.length(1), 3);
  EXPECT_EQ(dataset.label(1), 1);
  EXPECT_ANY_THROW(dataset.length(2));
  EXPECT_ANY_THROW(dataset.batch(std::vector<int64_t>{-1}));
}

TEST(TokenRows, CountLengths) {
  const std::vector<std::pair<int64_t, int64_t>> expected = {{1, 1}, {3, 1}, {5, 1}};
  EXPECT_EQ(length_histogram(*three_rows()), expected);
}

}  // namespace
}  // namespace spt::tasks
