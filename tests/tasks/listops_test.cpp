#include "tasks/formats/listops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/task.h"

namespace spt::tasks {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const OptionMap kShort = {{"max_length", int64_t{32}},    {"min_length", int64_t{3}},       {"max_depth", int64_t{4}},
                          {"max_arguments", int64_t{5}},  {"train_examples", int64_t{300}}, {"validation_examples", int64_t{40}},
                          {"test_examples", int64_t{50}}, {"generator_seed", int64_t{7}}};

OptionMap with(OptionMap options, const std::string& name, OptionValue value) {
  options[name] = std::move(value);
  return options;
}

template <class Function>
std::string listops_error(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

OpenedTask open_with(const OptionMap& options, const fs::path& root = "no data", uint64_t seed = 1) {
  return find_task("listops").open(options, root, Rng(seed).stream("subset"));
}

std::set<std::string> texts(const Dataset& dataset) {
  std::set<std::string> all;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const at::Tensor row = dataset.batch(std::vector<int64_t>{i}).tokens[0];
    std::string text;
    for (int64_t k = 0; k < row.size(0); ++k) text += std::to_string(row[k].item<int64_t>()) + " ";
    all.insert(text);
  }
  return all;
}

/// Folder with files in the official layout.
fs::path listops_root(const std::string& name, const formats::ListopsCounts& counts) {
  const fs::path root = fs::path(testing::TempDir()) / ("listops_task_" + name);
  fs::remove_all(root);
  formats::make_listops_files({.max_length = 30, .min_length = 3, .max_depth = 4, .max_arguments = 5, .seed = 9}, counts, root / "listops");
  return root;
}

const OptionMap kFiles = {{"source", std::string("lra")},       {"partial", true},
                          {"max_length", int64_t{32}},          {"train_examples", int64_t{60}},
                          {"validation_examples", int64_t{10}}, {"test_examples", int64_t{12}}};

TEST(ListopsTask, FactsAreThoseOfWhatIsOpened) {
  const TaskFacts facts = find_task("listops").facts(kShort, "no data");
  EXPECT_EQ(facts.vocabulary, 19);
  EXPECT_EQ(facts.max_length, 32);
  EXPECT_EQ(facts.outputs, 10);
  EXPECT_EQ(facts.metrics.at(0).name, "accuracy");
  EXPECT_FALSE(facts.partial);
  const OpenedTask opened = open_with(kShort);
  EXPECT_EQ(opened.train->size(), facts.train_size);
  EXPECT_EQ(opened.validation->size(), facts.validation_size);
  EXPECT_EQ(opened.test->size(), facts.test_size);
  EXPECT_EQ(opened.facts.data_hash, facts.data_hash);
  EXPECT_EQ(opened.facts.train_lengths, facts.train_lengths);
  int64_t examples = 0, positions = 0, expected = 0;
  for (const auto& [length, count] : facts.train_lengths) {
    EXPECT_LE(length, 32);
    EXPECT_GE(length, 5) << "min_length 3 is strict, and <eos> counts";
    examples += count;
    positions += length * count;
  }
  for (int64_t i = 0; i < opened.train->size(); ++i) expected += opened.train->length(i);
  EXPECT_EQ(examples, 300);
  EXPECT_EQ(positions, expected);
}

TEST(ListopsTask, BatchIsTheExpressionWithEndOfSequence) {
  const auto examples = formats::generate_listops({32, 3, 4, 5, 7}, "validation", 40);
  const OpenedTask opened = open_with(kShort);
  const Batch batch = opened.validation->batch(std::vector<int64_t>{2});
  const auto tokens = examples.tokens(2);
  ASSERT_EQ(batch.tokens.size(1), static_cast<int64_t>(tokens.size()) + 1);
  for (size_t k = 0; k < tokens.size(); ++k) EXPECT_EQ(batch.tokens[0][k].item<int64_t>(), formats::listops_vocabulary_id(tokens[k]));
  EXPECT_EQ(batch.tokens[0][-1].item<int64_t>(), 3);
  EXPECT_EQ(batch.labels[0].item<int64_t>(), examples.label(2));
}

TEST(ListopsTask, SplitsShareNoExpressionAndNoId) {
  const OpenedTask opened = open_with(kShort);
  std::set<std::string> all;
  std::set<int64_t> ids;
  for (const auto& split : {opened.train, opened.validation, opened.test}) {
    all.merge(texts(*split));
    for (int64_t i = 0; i < split->size(); ++i) ids.insert(split->batch(std::vector<int64_t>{i}).example_ids[0].item<int64_t>());
  }
  EXPECT_EQ(all.size(), 390u);
  EXPECT_EQ(ids.size(), 390u);
}

TEST(ListopsTask, MoreExamplesKeepTheOnesThereWere) {
  const OpenedTask few = open_with(kShort);
  const OpenedTask more = open_with(with(kShort, "train_examples", int64_t{400}));
  const std::vector<int64_t> same = {0, 150, 299};
  EXPECT_TRUE(torch::equal(few.train->batch(same).tokens, more.train->batch(same).tokens));
  EXPECT_TRUE(torch::equal(few.train->batch(same).example_ids, more.train->batch(same).example_ids));
  EXPECT_TRUE(torch::equal(few.test->batch(std::vector<int64_t>{0}).tokens, more.test->batch(std::vector<int64_t>{0}).tokens));
}

TEST(ListopsTask, DataHashFollowsEveryOptionThatTrainOrValidationDependsOn) {
  const auto hash = [](const OptionMap& options) { return find_task("listops").facts(options, "no data").data_hash; };
  std::set<std::string> hashes = {hash(kShort)};
  EXPECT_EQ(hashes.begin()->size(), 64u);
  for (const auto& [name, value] : kShort) hashes.insert(hash(with(kShort, name, std::get<int64_t>(value) + 1)));
  EXPECT_EQ(hashes.size(), kShort.size());  // all but test_examples
  EXPECT_EQ(hash(with(kShort, "test_examples", int64_t{7})), hash(kShort));
}

TEST(ListopsTask, ReadsFilesOfTheOfficialLayout) {
  const fs::path root = listops_root("files", {100, 10, 12});
  const OpenedTask opened = open_with(kFiles, root);
  EXPECT_EQ(opened.train->size(), 60);
  EXPECT_EQ(opened.unlabelled_train->size(), 100);
  EXPECT_EQ(opened.validation->size(), 10);
  EXPECT_EQ(opened.test->size(), 12);
  EXPECT_TRUE(opened.facts.partial);
  const auto made = formats::generate_listops({30, 3, 4, 5, 9}, "test", 12);
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(opened.test->label(i), made.label(i));
    EXPECT_EQ(opened.test->length(i), static_cast<int64_t>(made.tokens(i).size()) + 1);
  }
  const TaskFacts facts = find_task("listops").facts(kFiles, root);
  EXPECT_EQ(facts.data_hash, opened.facts.data_hash);
  EXPECT_EQ(facts.vocabulary, 19);
}

TEST(ListopsTask, SubsetsOfFilesAreNested) {
  const fs::path root = listops_root("nested", {100, 10, 12});
  const auto large = texts(*open_with(kFiles, root).train);
  const auto small = texts(*open_with(with(kFiles, "train_examples", int64_t{20}), root).train);
  EXPECT_EQ(small.size(), 20u);
  EXPECT_TRUE(std::includes(large.begin(), large.end(), small.begin(), small.end()));
  EXPECT_NE(texts(*open_with(with(kFiles, "train_examples", int64_t{20}), root, 2).train), small) << "another seed, another subset";
}

TEST(ListopsTask, CutsLongExpressionsOfFiles) {
  const fs::path root = listops_root("cut", {100, 10, 12});
  const OpenedTask opened = open_with(with(kFiles, "max_length", int64_t{6}), root);
  int64_t longest = 0;
  for (int64_t i = 0; i < opened.train->size(); ++i) longest = std::max(longest, opened.train->length(i));
  EXPECT_EQ(longest, 6);
  EXPECT_EQ(opened.facts.max_length, 6);
}

TEST(ListopsTask, WrongFilesAreErrorsThatHelp) {
  const auto error = [](const OptionMap& options, const fs::path& root) { return listops_error([&] { open_with(options, root); }); };
  EXPECT_THAT(error(kFiles, "nowhere"), HasSubstr("spt-bench data make listops"));
  const fs::path root = listops_root("sizes", {100, 10, 12});
  EXPECT_THAT(error(with(kFiles, "partial", false), root), HasSubstr("has 100 expressions, not the 96000 of Long Range Arena"));
  EXPECT_THAT(error(with(kFiles, "test_examples", int64_t{13}), root), HasSubstr("test_examples = 13 asks for more"));
}

TEST(ListopsTask, RefusesOptionsThatWouldDoNothing) {
  const auto error = [](const OptionMap& options) { return listops_error([&] { find_task("listops").validate(options); }); };
  EXPECT_EQ(error(kShort), "no error");
  EXPECT_EQ(error(kFiles), "no error");
  EXPECT_THAT(error(with(kFiles, "max_depth", int64_t{4})), HasSubstr("max_depth = 4 goes with source = \"generated\""));
  EXPECT_THAT(error(with(kShort, "partial", true)), HasSubstr("partial goes with source"));
  EXPECT_THAT(error(with(kShort, "max_length", int64_t{4})), HasSubstr("max_length is 4; allowed: 5"));
  EXPECT_THAT(error(with(kShort, "source", std::string("real"))), HasSubstr("generated"));
  EXPECT_THAT(error(with(kShort, "max_len", int64_t{4})), HasSubstr("max_length"));
}

TEST(ListopsTask, DefaultsAreLongRangeArenas) {
  const auto options = complete(find_task("listops").options, {}, "listops");
  EXPECT_EQ(std::get<int64_t>(options.at("max_length")), 2000);
  EXPECT_EQ(std::get<int64_t>(options.at("min_length")), 500);
  EXPECT_EQ(std::get<int64_t>(options.at("train_examples")), 96000);
  EXPECT_EQ(std::get<int64_t>(options.at("test_examples")), 2000);
}

}  // namespace
}  // namespace spt::tasks
