// Options of every task: the published data fractions, and z-scores of continuous inputs.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tasks/formats/split.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/z_score.h"
#include "tests/formats/image_files.h"

namespace spt::tasks {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing_files::message_of;

const std::filesystem::path kNothing = "no-such-data-root";

bool has_option(const Task& task, const std::string& name) {
  return std::any_of(task.options.begin(), task.options.end(), [&](const OptionSchema& option) { return option.name == name; });
}

TEST(TrainSubset, EveryTaskCanLearnFromAFraction) {
  for (const Task& task : tasks()) {
    EXPECT_TRUE(has_option(task, "train_fraction")) << task.name;
    EXPECT_TRUE(has_option(task, "subset_rule")) << task.name;
    EXPECT_THROW(task.facts({{"train_fraction", 1.5}}, kNothing), Error) << task.name;
    int64_t all = 0;
    try {
      all = task.facts({}, kNothing).train_size;
    } catch (const DataError&) {  // its sizes are not known without data
      continue;
    }
    EXPECT_EQ(task.facts({{"train_fraction", 0.3}}, kNothing).train_size, static_cast<int64_t>(0.3 * static_cast<double>(all)))
        << task.name;
  }
}

TEST(TrainSubset, TokensHaveNoZScoreAndValuesDo) {
  for (const Task& task : tasks()) {
    const bool tokens = task.name == "listops" || task.name == "text" || task.name == "retrieval";
    EXPECT_EQ(has_option(task, "z_score"), !tokens) << task.name;
  }
}

TEST(TrainSubset, ThePublishedRuleIsAPrefixOfNumpysPermutation) {
  const std::vector<int64_t> split = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  const Stream stream(5, "subset");
  const SubsetOptions published{.train_fraction = 0.3, .subset_rule = "published"};
  const int64_t size = train_size(published, 0, 10, "here");
  EXPECT_EQ(size, 3);
  EXPECT_EQ(train_members(published, split, size, stream), formats::train_fraction(split, 0.3, 42));
  EXPECT_EQ(train_members(published, split, size, Stream(6, "subset")),
            formats::train_fraction(split, 0.3, 42));  // the same for every seed
  EXPECT_EQ(train_members(published, split, 10, stream), split);
  EXPECT_EQ(train_members({}, split, 3, stream), formats::subset(split, 3, stream));
  for (int64_t n = 1; n < 10; ++n) {  // nested
    const auto fewer = train_members(published, split, n, stream), more = train_members(published, split, n + 1, stream);
    for (const int64_t i : fewer) EXPECT_THAT(more, Contains(i));
  }
}

TEST(TrainSubset, WrongSizesAreNamed) {
  EXPECT_EQ(train_size({}, 0, 10, "here"), 10);
  EXPECT_EQ(train_size({}, 4, 10, "here"), 4);
  EXPECT_THAT(message_of([] { train_size({}, 11, 10, "here"); }), HasSubstr("here: train_examples = 11, there are 10"));
  EXPECT_THAT(message_of([] { train_size({.train_fraction = 0.5}, 4, 10, "here"); }), HasSubstr("give one of them"));
  EXPECT_THAT(message_of([] { train_size({.train_fraction = 0.01}, 0, 10, "here"); }), HasSubstr("is none"));
}

TEST(TrainSubset, AGeneratedTaskTakesThePublishedFraction) {
  const OptionMap options = {{"min_length", int64_t{4}},      {"max_length", int64_t{16}},         {"max_depth", int64_t{3}},
                             {"train_examples", int64_t{40}}, {"validation_examples", int64_t{8}}, {"test_examples", int64_t{8}}};
  OptionMap part = options;
  part["train_fraction"] = 0.25;
  part["subset_rule"] = std::string("published");
  const Stream subset(1, "subset");
  const OpenedTask whole = find_task("listops").open(options, kNothing, subset), some = find_task("listops").open(part, kNothing, subset);
  ASSERT_EQ(some.train->size(), 10);
  EXPECT_EQ(some.facts.train_size, 10);
  EXPECT_EQ(some.unlabelled_train->size(), 40);
  EXPECT_EQ(some.facts.data_hash, whole.facts.data_hash);
  const std::vector<int64_t> wanted = formats::numpy_permutation(40, 42);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_EQ(some.train->batch(std::vector<int64_t>{i}).example_ids.item<int64_t>(), wanted[static_cast<size_t>(i)]);
}

/// Rows of 1 to 4 steps of two channels, channel 1 far away and wide.
class TwoChannels : public Dataset {
 public:
  explicit TwoChannels(int64_t first, bool constant = false) : first_(first), constant_(constant) {}
  int64_t size() const override { return 20; }
  int64_t length(int64_t index) const override { return 1 + index % 4; }
  int64_t label(int64_t) const override { return 0; }
  int64_t cluster(int64_t index) const override { return index / 2; }
  Batch batch(std::span<const int64_t> indices) const override {
    const auto n = static_cast<int64_t>(indices.size());
    Batch batch;
    batch.values = torch::zeros({n, 4, 2});
    batch.lengths = torch::zeros({n}, torch::kInt64);
    for (int64_t b = 0; b < n; ++b) {
      const int64_t i = indices[static_cast<size_t>(b)];
      batch.lengths[b] = length(i);
      for (int64_t t = 0; t < length(i); ++t) {
        batch.values[b][t][0] = static_cast<double>((first_ + i + t) % 5);
        batch.values[b][t][1] = constant_ ? 7.0 : 1000.0 + 50.0 * static_cast<double>((first_ + i * 3 + t) % 7);
      }
    }
    return batch;
  }

 private:
  int64_t first_;
  bool constant_;
};

OpenedTask two_channels(bool constant = false) {
  OpenedTask opened;
  opened.facts.channels = 2;
  opened.facts.max_length = 4;
  opened.train = opened.unlabelled_train = std::make_shared<TwoChannels>(0, constant);
  opened.validation = std::make_shared<TwoChannels>(3);
  opened.test = std::make_shared<TwoChannels>(11);
  return opened;
}

std::vector<double> real_values(const Dataset& data, int64_t channel) {
  std::vector<double> values;
  for (int64_t i = 0; i < data.size(); ++i) {
    const Batch one = data.batch(std::vector<int64_t>{i});
    for (int64_t t = 0; t < data.length(i); ++t) values.push_back(one.values[0][t][channel].item<double>());
  }
  return values;
}

TEST(ZScore, GivesTrainMeanZeroAndDeviationOneInEachChannel) {
  OpenedTask opened = two_channels();
  const double before = real_values(*opened.test, 1)[0];
  const auto raw = torch::tensor(real_values(*opened.train, 1), torch::kFloat64);
  z_score(opened, 2, kZScoreStoredValues);
  for (int64_t channel = 0; channel < 2; ++channel) {
    const auto x = torch::tensor(real_values(*opened.train, channel), torch::kFloat64);
    EXPECT_NEAR(x.mean().item<double>(), 0, 1e-6);
    EXPECT_NEAR(x.std(false).item<double>(), 1, 1e-6);
  }
  // Test values by the statistics of train, not their own.
  EXPECT_NEAR(real_values(*opened.test, 1)[0], (before - raw.mean().item<double>()) / raw.std(false).item<double>(), 1e-5);
  EXPECT_EQ(opened.train, opened.unlabelled_train);
  EXPECT_EQ(opened.test->cluster(5), 2);
  const Batch padded = opened.test->batch(std::vector<int64_t>{0, 3});
  EXPECT_EQ(padded.values[0].slice(0, 1, 4).abs().sum().item<double>(), 0) << "pads stay zero";
  ASSERT_EQ(opened.notes.size(), 1u);
  EXPECT_THAT(opened.notes[0], HasSubstr("over 20 of 20 train examples"));
}

TEST(ZScore, OfLargeDataCountsEvenlySpacedExamples) {
  OpenedTask opened = two_channels();
  z_score(opened, 2, 5 * 8);
  EXPECT_THAT(opened.notes.at(0), HasSubstr("over 5 of 20 train examples"));
}

TEST(ZScore, OfAChannelThatNeverChangesIsRefused) {
  OpenedTask opened = two_channels(true);
  EXPECT_THAT(message_of<DataError>([&] { z_score(opened, 2, kZScoreStoredValues); }),
              HasSubstr("channel 1 of train has the value 7 only"));
}

}  // namespace
}  // namespace spt::tasks
