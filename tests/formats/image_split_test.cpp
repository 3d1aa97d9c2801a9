#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tasks/formats/split.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using testing_files::message_of;

std::vector<uint8_t> uneven_labels(int n) {
  std::vector<uint8_t> labels;
  for (int i = 0; i < n; ++i) labels.push_back(static_cast<uint8_t>(i % 7 == 0 ? 2 : i % 3 == 0 ? 1 : 0));
  return labels;
}

int64_t checksum(const std::vector<int64_t>& indices) {
  int64_t sum = 0;
  for (size_t i = 0; i < indices.size(); ++i) sum = (sum + static_cast<int64_t>(i) * indices[i]) % 1'000'000'007;
  return sum;
}

TEST(RandomSplit, SizesAreThoseOfPython) {
  EXPECT_EQ(random_split(50'000, 0.1, 42).train.size(), 45'000u);
  EXPECT_EQ(random_split(10, 0.25, 1).train.size(), 7u);  // int(7.5)
  EXPECT_EQ(random_split(10, 0.0, 1).validation.size(), 0u);
  EXPECT_EQ(random_split(10, 1.0, 1).train.size(), 0u);
  EXPECT_NE(message_of([] { random_split(10, 1.5, 1); }), "");
}

TEST(RandomSplit, IsTheOneOfTorch) {
  // torch.utils.data.random_split(range(10), [8, 2], generator=torch.Generator().manual_seed(0)): randperm gives 4 1 7 5 3 9 0 8 6 2
  const TwoSplits splits = random_split(10, 0.2, 0);
  EXPECT_THAT(splits.train, ::testing::ElementsAre(4, 1, 7, 5, 3, 9, 0, 8));
  EXPECT_THAT(splits.validation, ::testing::ElementsAre(6, 2));
}

TEST(RandomSplit, PiecesPartitionTheRange) {
  const auto pieces = random_split(100, std::array<int64_t, 3>{80, 10, 10}, 42);
  std::vector<int64_t> all;
  for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  EXPECT_NE(checksum(all), checksum(torch_randperm(100, 43)));
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(all[i], i);
}

TEST(NumpyPermutation, IsTheOneOfRandomState) {
  // numpy.random.RandomState(42).permutation(10)
  EXPECT_THAT(numpy_permutation(10, 42), ::testing::ElementsAre(8, 1, 5, 0, 7, 2, 9, 4, 3, 6));
  EXPECT_TRUE(numpy_permutation(0, 1).empty());
  EXPECT_THAT(numpy_permutation(1, 1), ::testing::ElementsAre(0));
}

TEST(TrainFraction, TakesTheBeginningOfOnePermutation) {
  const std::vector<int64_t> train = {30, 10, 20, 50, 40, 70, 60, 90, 80, 0};
  EXPECT_THAT(train_fraction(train, 0.3, 42), ::testing::ElementsAre(80, 10, 70));
  EXPECT_THAT(train_fraction(train, 2, 42), ::testing::ElementsAre(80, 10));  // a number of examples
  EXPECT_EQ(train_fraction(train, 1, 42).size(), 10u);
  EXPECT_TRUE(train_fraction(train, 0.05, 42).empty());
  for (const double wrong : {-0.1, 11.0, std::nan("")}) EXPECT_NE(message_of([&] { train_fraction(train, wrong, 42); }), "") << wrong;
}

TEST(TwoStageSplit, HoldsOutTheCeilingAndPartitions) {
  const ThreeSplits splits = two_stage_split(101, 0.3, 0.5, 0);
  EXPECT_EQ(splits.test.size(), 16u);  // 31 are held out
  EXPECT_EQ(splits.validation.size(), 15u);
  std::vector<int64_t> all = splits.train;
  all.insert(all.end(), splits.validation.begin(), splits.validation.end());
  all.insert(all.end(), splits.test.begin(), splits.test.end());
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 101; ++i) ASSERT_EQ(all[i], i);
  for (const double wrong : {0.0, 1.0, -0.5, std::nan("")})
    EXPECT_NE(message_of([&] { two_stage_split(101, wrong, 0.5, 0); }), "") << wrong;
  EXPECT_NE(message_of([] { two_stage_split(3, 0.3, 0.5, 0); }), "");
}

TEST(StratifiedSplit, KeepsSharesAndCoversEveryIndexOnce) {
  const auto labels = uneven_labels(1000);
  const TwoSplits splits = stratified_split(labels, 100, 42);
  EXPECT_EQ(splits.validation.size(), 100u);
  EXPECT_EQ(splits.train.size(), 900u);
  std::array<double, 3> all{};
  std::array<double, 3> chosen{};
  for (const uint8_t label : labels) ++all[label];
  for (const int64_t i : splits.validation) ++chosen[labels[i]];
  for (int c = 0; c < 3; ++c) EXPECT_LT(std::abs(chosen[c] - all[c] / 10), 1.0) << c;
  std::vector<int64_t> joined = splits.train;
  joined.insert(joined.end(), splits.validation.begin(), splits.validation.end());
  std::sort(joined.begin(), joined.end());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(joined[i], i);
}

TEST(StratifiedSplit, DependsOnItsSeedAlone) {
  const auto labels = uneven_labels(500);
  EXPECT_EQ(stratified_split(labels, 50, 42).validation, stratified_split(labels, 50, 42).validation);
  EXPECT_NE(stratified_split(labels, 50, 42).validation, stratified_split(labels, 50, 43).validation);
}

TEST(StratifiedSplit, TakesNoneAllAndRefusesMore) {
  const auto labels = uneven_labels(10);
  EXPECT_TRUE(stratified_split(labels, 0, 1).validation.empty());
  EXPECT_TRUE(stratified_split(labels, 10, 1).train.empty());
  EXPECT_TRUE(stratified_split({}, 0, 1).train.empty());
  EXPECT_NE(message_of([&] { stratified_split(labels, 11, 1); }), "");
  EXPECT_NE(message_of([&] { stratified_split(labels, -1, 1); }), "");
}

TEST(Subset, SmallerOnesAreTheBeginningOfLargerOnes) {
  std::vector<int64_t> train;
  for (int64_t i = 0; i < 300; ++i) train.push_back(3 * i);
  const Stream stream(5, "subset");
  const auto small = subset(train, 20, stream);
  const auto large = subset(train, 200, stream);
  ASSERT_EQ(small.size(), 20u);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  EXPECT_TRUE(std::all_of(large.begin(), large.end(), [](int64_t i) { return i % 3 == 0; }));
  EXPECT_NE(small, subset(train, 20, Stream(6, "subset")));
  EXPECT_EQ(subset(train, 0, stream), train);
  EXPECT_NE(message_of([&] { subset(train, 301, stream); }), "");
}

}  // namespace
}  // namespace spt::formats
