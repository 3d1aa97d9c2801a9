#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "harness/base/hash.h"
#include "tasks/task.h"

// What every registered task must do. The suite Data/... needs the task's data: SPT_DATA, or an installed package.
namespace spt::tasks {
namespace {

namespace fs = std::filesystem;

const std::vector<Split> kSplits = {Split::kTrain, Split::kValidation, Split::kTest};

/// Smaller data that stand in for the official ones where those are not.
OptionMap stand_in(const std::string& task) {
  if (task == "retrieval") return {{"source", std::string("scisummnet")}};
  if (task == "speech") return {{"release", std::string("v0.01")}, {"words", std::string("down eight five go left one right up zero")}};
  return {};
}

/// Options that keep a task small, 0: all its examples; part of its data is enough. They begin with `options`.
OptionMap small_options(const Task& task, OptionMap options, int64_t train_examples = 120) {
  const auto set = [&](const std::string& name, const OptionValue& value) {
    for (const OptionSchema& option : task.options)
      if (option.name == name && train_examples > 0) options[name] = value;
  };
  set("train_examples", train_examples);
  set("validation_examples", int64_t{20});
  set("test_examples", int64_t{20});
  OptionMap partial = options;
  for (const OptionSchema& option : task.options)
    if (option.name == "partial") partial["partial"] = true;
  try {
    if (task.validate) task.validate(complete(task.options, partial, task.name));
    return partial;
  } catch (const Error&) {  // generated data are never partial
    return options;
  }
}

fs::path data_folder() {
  const char* root = std::getenv("SPT_DATA");
  return root ? root : "data";
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task& task : tasks()) names.push_back(task.name);
  return names;
}

const Dataset& split_of(const OpenedTask& opened, Split split) {
  return split == Split::kTrain ? *opened.train : split == Split::kValidation ? *opened.validation : *opened.test;
}

Batch example(const Dataset& dataset, int64_t index) { return dataset.batch(std::vector<int64_t>{index}); }

/// Hash of what a network sees of one example: its input, without pads, and not its label.
std::string content(const Dataset& dataset, int64_t index) {
  const Batch one = example(dataset, index);
  const at::Tensor x = (one.tokens.defined() ? one.tokens : one.values).contiguous();
  return sha256(std::string_view(static_cast<const char*>(x.data_ptr()), x.nbytes()));
}

TEST(Tasks, SayWhatTheyAreWithoutData) {
  for (const Task& task : tasks()) {
    EXPECT_FALSE(task.summary.empty()) << task.name;
    EXPECT_FALSE(task.source.empty()) << task.name;
    EXPECT_GE(task.version, 1) << task.name;
    TaskFacts facts;
    try {
      facts = task.facts(complete(task.options, {}, task.name), "no-such-data-root");
    } catch (const DataError& error) {  // no official hash is known: then it says what to put where
      EXPECT_NE(std::string(error.what()).find("put "), std::string::npos) << error.what();
      continue;
    }
    EXPECT_NE(facts.vocabulary > 0, facts.channels > 0) << task.name << ": tokens or values, not both";
    EXPECT_GT(facts.max_length, 0) << task.name;
    EXPECT_GT(facts.outputs, 0) << task.name;
    ASSERT_FALSE(facts.metrics.empty()) << task.name;
    for (const int64_t size : {facts.train_size, facts.validation_size, facts.test_size}) EXPECT_GT(size, 0) << task.name;
    EXPECT_EQ(facts.data_hash.size(), 64u) << task.name;
    int64_t counted = 0;
    for (const auto& [length, count] : facts.train_lengths) counted += length <= facts.max_length ? count : 0;
    EXPECT_GE(counted, facts.train_size) << task.name << ": lengths of the train examples, or of all they are split from";
  }
}

TEST(Tasks, HaveAnyNumberOfTestExamplesAfterOnePretraining) {
  for (const Task& task : tasks()) {
    const auto option =
        std::find_if(task.options.begin(), task.options.end(), [](const OptionSchema& o) { return o.name == "test_examples"; });
    ASSERT_NE(option, task.options.end()) << task.name;
    EXPECT_EQ(option->info.stage, "supervised") << task.name << ": the key of a pretraining stage would hold it";
    try {
      const auto hash = [&](int64_t n) {
        return task.facts(complete(task.options, {{"test_examples", n}}, task.name), "no-such-data-root").data_hash;
      };
      EXPECT_EQ(hash(20), hash(40)) << task.name;
    } catch (const DataError&) {  // no data here to take a hash of
    }
  }
}

TEST(Tasks, RefuseOptionsTheyDoNotHave) {
  for (const Task& task : tasks()) EXPECT_THROW(task.facts({{"no_such_option", int64_t{1}}}, "no-such-data-root"), Error) << task.name;
}

class EveryTask : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      opened_ = open(120, 1);
    } catch (const DataError&) {
      start_ = stand_in(GetParam());
      try {
        opened_ = open(120, 1);
      } catch (const DataError& absent) {
        GTEST_SKIP() << absent.what();
      }
    }
  }
  OptionMap options(int64_t train_examples) const { return small_options(find_task(GetParam()), start_, train_examples); }
  OpenedTask open(int64_t train_examples, uint64_t seed) const {
    const Task& task = find_task(GetParam());
    return task.open(complete(task.options, options(train_examples), task.name), data_folder(), Rng(seed).stream("subset"));
  }
  OpenedTask opened_;

 private:
  OptionMap start_;
};

TEST_P(EveryTask, HasBatchesOfTheShapesThatItsFactsState) {
  const TaskFacts& facts = opened_.facts;
  for (const Split split : kSplits) {
    const Dataset& dataset = split_of(opened_, split);
    const std::vector<int64_t> indices = {0, dataset.size() - 1, dataset.size() / 2};
    const Batch batch = dataset.batch(indices);
    const int64_t rows = 3 * batch.documents;
    const at::Tensor& x = batch.tokens.defined() ? batch.tokens : batch.values;
    ASSERT_EQ(x.size(0), rows) << split_name(split);
    EXPECT_LE(x.size(1), facts.max_length);
    EXPECT_EQ(batch.tokens.defined(), facts.vocabulary > 0);
    if (batch.tokens.defined()) {
      EXPECT_LT(batch.tokens.max().item<int64_t>(), facts.vocabulary);
      EXPECT_GE(batch.tokens.min().item<int64_t>(), 0);
    } else {
      EXPECT_EQ(batch.values.size(2), facts.channels);
      EXPECT_TRUE(batch.values.isfinite().all().item<bool>());
    }
    EXPECT_EQ(batch.lengths.sizes(), (std::vector<int64_t>{rows}));
    EXPECT_EQ(batch.lengths.max().item<int64_t>(), x.size(1)) << "padded to the longest row";
    if (facts.kind == "classification") {
      EXPECT_EQ(batch.labels.sizes(), (std::vector<int64_t>{3}));
      EXPECT_LT(batch.labels.max().item<int64_t>(), facts.outputs);
      EXPECT_EQ(batch.labels[0].item<int64_t>(), dataset.label(0));
    } else if (facts.kind == "regression") {
      EXPECT_EQ(batch.targets.sizes(), (std::vector<int64_t>{3, facts.outputs}));
    }
  }
}

TEST_P(EveryTask, SizesAreThoseOfItsFacts) {
  EXPECT_EQ(opened_.train->size(), opened_.facts.train_size);
  EXPECT_EQ(opened_.validation->size(), opened_.facts.validation_size);
  EXPECT_EQ(opened_.test->size(), opened_.facts.test_size);
}

TEST_P(EveryTask, ExampleIdsAreUniqueOverItsSplits) {
  std::set<int64_t> ids;
  int64_t examples = 0;
  for (const Split split : kSplits)
    for (int64_t i = 0; i < split_of(opened_, split).size(); ++i, ++examples)
      ids.insert(example(split_of(opened_, split), i).example_ids[0].item<int64_t>());
  EXPECT_EQ(static_cast<int64_t>(ids.size()), examples);
}

/// Whole splits of real data, which hold some exact duplicates: docs/tasks.md lists which, and the notes count them. Of generated data a
/// part.
TEST_P(EveryTask, NoExampleIsInTwoSplitsUnlessTheTaskSaysSo) {
  const OpenedTask opened = options(120).contains("partial") ? open(0, 1) : open(400, 1);
  std::map<std::string, Split> seen;
  int64_t shared = 0;
  for (const Split split : kSplits)
    for (int64_t i = 0; i < split_of(opened, split).size(); ++i) {
      const auto [at, fresh] = seen.emplace(content(split_of(opened, split), i), split);
      shared += !fresh && at->second != split;
    }
  EXPECT_TRUE(shared == 0 || (!find_task(GetParam()).leaks.empty() && !opened.notes.empty())) << shared << " examples are in two splits";
}

TEST_P(EveryTask, SubsetsOfASeedAreNested) {
  std::set<std::string> all;
  for (int64_t i = 0; i < opened_.train->size(); ++i) all.insert(content(*opened_.train, i));
  const OpenedTask fewer = open(40, 1);
  if (fewer.train->size() == opened_.train->size()) GTEST_SKIP() << "the task has no subsets";
  for (int64_t i = 0; i < fewer.train->size(); ++i) EXPECT_TRUE(all.contains(content(*fewer.train, i))) << i;
}

TEST_P(EveryTask, OpensTheSameWayTwice) {
  const OpenedTask again = open(120, 1);
  EXPECT_EQ(again.facts.data_hash, opened_.facts.data_hash);
  for (const Split split : kSplits)
    for (int64_t i = 0; i < split_of(opened_, split).size(); ++i)
      ASSERT_EQ(content(split_of(again, split), i), content(split_of(opened_, split), i)) << i;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Data, EveryTask, testing::ValuesIn(task_names()), test_name);

}  // namespace
}  // namespace spt::tasks
