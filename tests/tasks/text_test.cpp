#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "harness/base/error.h"
#include "tasks/formats/imdb.h"
#include "tasks/imdb_official.h"
#include "tasks/task.h"

namespace spt::tasks {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// 30 + 30 train and 20 + 20 test reviews: review i of a class has i + 1 times "a", then one "b", and "c" only where i is 0.
fs::path text_root(const std::string& name) {
  const fs::path root = fs::path(testing::TempDir()) / ("text_task_" + name);
  fs::remove_all(root);
  for (const char* split : {"train", "test"}) {
    for (const char* label : {"neg", "pos"}) {
      const fs::path folder = root / "imdb" / "aclImdb" / split / label;
      fs::create_directories(folder);
      for (int i = 0; i < (split == std::string("train") ? 30 : 20); ++i) {
        std::ofstream(folder / (std::to_string(i) + (label == std::string("neg") ? "_1.txt" : "_10.txt")))
            << label[0] << std::string(i + 1, 'a') << "\xc3\xa9" << (i == 0 ? "c" : "") << (split == std::string("test") ? "!" : "");
      }
    }
  }
  return root;
}

const OptionMap kSmall = {{"max_length", int64_t{16}}, {"min_freq", int64_t{10}}, {"validation_examples", int64_t{10}}, {"partial", true}};

OptionMap text_with(OptionMap options, const std::string& name, OptionValue value) {
  options[name] = std::move(value);
  return options;
}

OpenedTask open_text_with(const OptionMap& options, const fs::path& root, uint64_t seed = 1) {
  return find_task("text").open(options, root, Rng(seed).stream("subset"));
}

std::set<int64_t> ids_of(const Dataset& dataset) {
  std::set<int64_t> ids;
  for (int64_t i = 0; i < dataset.size(); ++i) ids.insert(dataset.batch(std::vector<int64_t>{i}).example_ids[0].item<int64_t>());
  return ids;
}

int64_t positives(const Dataset& dataset) {
  int64_t n = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) n += dataset.label(i);
  return n;
}

template <class Function>
std::string text_error(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TextTask, CarvesAStratifiedValidationSplit) {
  const fs::path root = text_root("splits");
  const OpenedTask opened = open_text_with(kSmall, root);
  EXPECT_EQ(opened.train->size(), 50);
  EXPECT_EQ(opened.validation->size(), 10);
  EXPECT_EQ(opened.test->size(), 40);
  EXPECT_EQ(positives(*opened.validation), 5);
  EXPECT_EQ(positives(*opened.train), 25);
  std::set<int64_t> ids = ids_of(*opened.train);
  ids.merge(ids_of(*opened.validation));
  ids.merge(ids_of(*opened.test));
  EXPECT_EQ(ids.size(), 100u) << "no example is in two splits";
  EXPECT_EQ(ids_of(*open_text_with(kSmall, root, 2).validation), ids_of(*opened.validation))
      << "the job's seed moves no validation example";
  EXPECT_NE(ids_of(*open_text_with(text_with(kSmall, "split_seed", int64_t{43}), root).validation), ids_of(*opened.validation));
}

TEST(TextTask, EncodesCharactersCutWithEndOfSequence) {
  const OpenedTask opened = open_text_with(kSmall, text_root("encode"));
  // Train counts, cut to 15 characters: most are a; n and p 30 each; e acute 26 (the 13 shortest of a class); c 2, so unknown; no !.
  EXPECT_EQ(opened.facts.vocabulary, 4 + 4);
  const Batch batch = opened.test->batch(std::vector<int64_t>{0, 19});
  EXPECT_TRUE(torch::equal(batch.tokens[0].slice(0, 0, 6), torch::tensor({5, 4, 7, 2, 2, 3}, torch::kInt64))) << batch.tokens[0];
  EXPECT_EQ(batch.lengths[0].item<int64_t>(), 6);
  EXPECT_EQ(batch.lengths[1].item<int64_t>(), 16);
  EXPECT_EQ(batch.tokens[1][15].item<int64_t>(), 3);
  EXPECT_EQ(batch.labels.sum().item<int64_t>(), 0);
}

TEST(TextTask, EncodesBytesByTheirValue) {
  OptionMap options = text_with(kSmall, "tokens", std::string("bytes"));
  options.erase("min_freq");
  const fs::path root = text_root("bytes");
  const OpenedTask opened = open_text_with(options, root);
  EXPECT_EQ(opened.facts.vocabulary, 4 + 256);
  const Batch batch = opened.test->batch(std::vector<int64_t>{0, 19});
  EXPECT_TRUE(torch::equal(batch.tokens[0].slice(0, 0, 7),
                           torch::tensor({4 + 'n', 4 + 'a', 4 + 0xc3, 4 + 0xa9, 4 + 'c', 4 + '!', 3}, torch::kInt64)))
      << batch.tokens[0];
  EXPECT_EQ(batch.lengths[1].item<int64_t>(), 16);
  EXPECT_EQ(batch.tokens[1][15].item<int64_t>(), 3);
  EXPECT_EQ(find_task("text").facts(options, root).train_lengths, opened.facts.train_lengths);
  EXPECT_THAT(text_error([&] { open_text_with(text_with(options, "min_freq", int64_t{3}), root); }),
              HasSubstr("min_freq = 3 goes with tokens = \"characters\""));
  EXPECT_THAT(text_error([] { find_task("text").facts({{"tokens", std::string("bytes")}}, "no-such-data-root"); }),
              HasSubstr("tokens = \"bytes\""));
}

TEST(TextTask, FactsAreThoseOfWhatIsOpened) {
  const fs::path root = text_root("facts");
  const TaskFacts facts = find_task("text").facts(kSmall, root);
  const OpenedTask opened = open_text_with(kSmall, root);
  EXPECT_EQ(facts.vocabulary, opened.facts.vocabulary);
  EXPECT_EQ(facts.train_lengths, opened.facts.train_lengths);
  EXPECT_EQ(facts.data_hash, opened.facts.data_hash);
  EXPECT_EQ(facts.train_size, 50);
  EXPECT_EQ(facts.validation_size, 10);
  EXPECT_EQ(facts.test_size, 40);
  EXPECT_TRUE(facts.partial);
  EXPECT_EQ(facts.outputs, 2);
}

TEST(TextTask, SubsetsAreNestedAndTestOnesDoNotFollowTheSeed) {
  const fs::path root = text_root("subsets");
  const OptionMap options = text_with(text_with(kSmall, "train_examples", int64_t{20}), "test_examples", int64_t{8});
  const OpenedTask opened = open_text_with(options, root);
  const auto large = ids_of(*opened.train);
  const auto small = ids_of(*open_text_with(text_with(options, "train_examples", int64_t{5}), root).train);
  EXPECT_EQ(large.size(), 20u);
  EXPECT_TRUE(std::includes(large.begin(), large.end(), small.begin(), small.end()));
  EXPECT_EQ(opened.unlabelled_train->size(), 50);
  EXPECT_EQ(opened.facts.train_size, 20);
  EXPECT_EQ(opened.test->size(), 8);
  EXPECT_EQ(positives(*opened.test), 4);
  const OpenedTask other = open_text_with(options, root, 2);
  EXPECT_NE(ids_of(*other.train), large);
  EXPECT_EQ(ids_of(*other.test), ids_of(*opened.test));
  EXPECT_EQ(other.facts.vocabulary, opened.facts.vocabulary);
}

TEST(TextTask, SaysWhatTrainAndTestShare) {
  const fs::path root = text_root("shared");
  std::ofstream(root / "imdb/aclImdb/test/pos/3_10.txt") << "paa\xc3\xa9";  // train/pos/1_10.txt
  std::ofstream(root / "imdb/aclImdb/test/pos/4_10.txt") << "paa\xc3\xa9";
  const OpenedTask opened = open_text_with(text_with(kSmall, "validation_examples", int64_t{2}), root);
  EXPECT_THAT(opened.notes, Contains(HasSubstr("2 test reviews have the text of a train review")));
}

TEST(TextTask, OtherDataNeedPartial) {
  const fs::path root = text_root("partial");
  const auto error = [](const OptionMap& options, const fs::path& where) { return text_error([&] { open_text_with(options, where); }); };
  EXPECT_THAT(error(text_with(kSmall, "partial", false), root), HasSubstr("are not the official ones (60 train, 40 test"));
  EXPECT_THAT(error(kSmall, "nowhere"), HasSubstr("nowhere/imdb/aclImdb"));
  EXPECT_THAT(error(text_with(kSmall, "train_examples", int64_t{51}), root), HasSubstr("60 train and 40 test reviews are too few"));
  EXPECT_THAT(error(text_with(kSmall, "validation_examples", int64_t{60}), root), HasSubstr("validation_examples 60"));
}

TEST(TextTask, IsPlannedWithoutData) {
  const TaskFacts facts = find_task("text").facts({}, "nowhere");
  EXPECT_EQ(facts.vocabulary, 135);
  EXPECT_EQ(facts.train_size, 22500);
  EXPECT_EQ(facts.test_size, 25000);
  EXPECT_EQ(facts.data_hash, formats::kImdbOfficialHash);
  EXPECT_FALSE(facts.partial);
  EXPECT_THAT(text_error([] { find_task("text").facts({{"max_length", int64_t{1000}}}, "nowhere"); }), HasSubstr("1024, 2048 and 4096"));
  EXPECT_THAT(text_error([] { find_task("text").facts({{"train_examples", int64_t{22501}}}, "nowhere"); }), HasSubstr("22501"));
}

TEST(TextTask, OfficialLengthsAreOfAllReviews) {
  for (const int64_t max_length : {10, 1024, 4096}) {
    int64_t reviews = 0, longest = 0;
    for (const auto& [length, count] : official_imdb_lengths(max_length)) {
      reviews += count;
      longest = length;
    }
    EXPECT_EQ(reviews, 25000);
    EXPECT_EQ(longest, max_length);
  }
}

TEST(DataText, OfficialFactsAreThoseOfTheData) {
  const char* place = std::getenv("SPT_DATA");
  if (place == nullptr) GTEST_SKIP() << "SPT_DATA does not say where the data are";
  const auto found = formats::find_imdb(place);
  if (!found) GTEST_SKIP() << "there are no reviews below " << place;
  const fs::path root = fs::path(testing::TempDir()) / "text_task_official";  // the cache is written below it
  fs::remove_all(root);
  fs::create_directories(root);
  fs::create_symlink(fs::absolute(*found), root / found->filename());
  for (const int64_t max_length : {1024, 2048, 4096}) {
    const OptionMap options = {{"max_length", max_length}};
    const TaskFacts planned = find_task("text").facts(options, "nowhere");
    const OpenedTask opened = open_text_with(options, root);
    EXPECT_EQ(planned.vocabulary, opened.facts.vocabulary) << max_length;
    EXPECT_EQ(planned.train_lengths, opened.facts.train_lengths) << max_length;
    EXPECT_EQ(planned.data_hash, opened.facts.data_hash);
    EXPECT_EQ(planned.train_size, opened.train->size());
    EXPECT_EQ(planned.validation_size, opened.validation->size());
    EXPECT_EQ(planned.test_size, opened.test->size());
    if (max_length == 4096) {
      for (const std::string& note : opened.notes) std::printf("%s\n", note.c_str());
    }
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace spt::tasks
