#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <set>

#include "tasks/formats/aan.h"
#include "tasks/pair_dataset.h"
#include "tasks/task.h"
#include "tests/formats/aan_files.h"

namespace spt::tasks {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

OpenedTask open_pairs(const TemporaryFolder& root, OptionMap options = {}, uint64_t seed = 1) {
  options["partial"] = true;
  return find_task("retrieval").open(options, root.path, Stream(seed, "subset"));
}

TEST(RetrievalTask, FactsAreThoseOfTheOpenedPairs) {
  const TemporaryFolder root;
  write_aan(root);
  const OpenedTask opened = open_pairs(root);
  const TaskFacts planned = find_task("retrieval").facts({{"partial", true}}, root.path);
  for (const TaskFacts& facts : {opened.facts, planned}) {
    EXPECT_EQ(facts.documents, 2);
    EXPECT_EQ(facts.outputs, 2);
    EXPECT_EQ(facts.max_length, 4000);
    EXPECT_EQ(facts.train_size, 6);
    EXPECT_EQ(facts.validation_size, 3);
    EXPECT_EQ(facts.test_size, 2);
    EXPECT_TRUE(facts.partial);
    // Rows of train, with <eos>: "A Tree Model" in 4 pairs, "Knowledge ..." in 2, "caf." in 3, "zz" in 3 (twice in one).
    EXPECT_THAT(facts.train_lengths, ElementsAre(std::pair<int64_t, int64_t>(3, 3), std::pair<int64_t, int64_t>(5, 3),
                                                 std::pair<int64_t, int64_t>(13, 4), std::pair<int64_t, int64_t>(27, 2)));
  }
  EXPECT_EQ(opened.facts.data_hash, planned.data_hash);
  EXPECT_EQ(opened.facts.vocabulary, planned.vocabulary);
}

TEST(RetrievalTask, ABatchStacksFirstDocumentsOverSecondOnes) {
  const TemporaryFolder root;
  write_aan(root);
  const OpenedTask opened = open_pairs(root);
  const Batch batch = opened.train->batch(std::vector<int64_t>{0, 3});
  EXPECT_EQ(batch.documents, 2);
  EXPECT_EQ(batch.tokens.sizes(), (std::vector<int64_t>{4, 27}));
  EXPECT_TRUE(torch::equal(batch.lengths, torch::tensor({13, 3, 27, 3})));
  EXPECT_TRUE(torch::equal(batch.labels, torch::tensor({1, 0})));
  EXPECT_TRUE(torch::equal(batch.example_ids, torch::tensor({0, 3})));
  EXPECT_TRUE(torch::equal(batch.tokens[1], batch.tokens[3]));  // "zz" with itself
  EXPECT_EQ(batch.tokens[0][12].item<int64_t>(), 3);            // <eos>, then <pad>
  EXPECT_EQ(batch.tokens[0][13].item<int64_t>(), 1);
  EXPECT_EQ(batch.tokens[0][4].item<int64_t>(), 4);  // "e" is the most frequent: 20 times in the six pairs
  EXPECT_EQ(opened.train->length(0), 27);
  EXPECT_EQ(opened.train->label(1), 0);
  EXPECT_THROW(opened.train->batch(std::vector<int64_t>{6}), std::logic_error);
}

TEST(RetrievalTask, TextsAreCutAndUnseenCharactersUnknown) {
  const TemporaryFolder root;
  write_aan(root);
  const OpenedTask opened = open_pairs(root, {{"max_length", int64_t{6}}});
  const Batch batch = opened.test->batch(std::vector<int64_t>{0});  // "only " | "A Tre"
  EXPECT_TRUE(torch::equal(batch.lengths, torch::tensor({6, 6})));
  EXPECT_EQ(batch.tokens[0][3].item<int64_t>(), 2);  // "y" stands in no cut train text
  EXPECT_NE(batch.tokens[0][2].item<int64_t>(), 2);
  EXPECT_EQ(opened.facts.train_lengths.back().first, 6);
}

TEST(RetrievalTask, IdsOfSplitsDoNotMeetAndSubsetsAreNested) {
  const TemporaryFolder root;
  write_aan(root);
  const auto ids = [](const Dataset& dataset) {
    std::vector<int64_t> all(static_cast<size_t>(dataset.size()));
    for (int64_t i = 0; i < dataset.size(); ++i)
      all[static_cast<size_t>(i)] = dataset.batch(std::vector<int64_t>{i}).example_ids[0].item<int64_t>();
    return all;
  };
  const OpenedTask opened = open_pairs(root);
  std::set<int64_t> seen;
  for (const auto& split : {opened.train, opened.validation, opened.test})
    for (const int64_t id : ids(*split)) EXPECT_TRUE(seen.insert(id).second);
  EXPECT_EQ(seen.size(), 11u);
  const auto small = ids(*open_pairs(root, {{"train_examples", int64_t{2}}}).train),
             large = ids(*open_pairs(root, {{"train_examples", int64_t{4}}}).train);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  EXPECT_EQ(open_pairs(root, {{"train_examples", int64_t{2}}}).unlabelled_train->size(), 6);
  EXPECT_EQ(open_pairs(root, {{"validation_examples", int64_t{2}}}).validation->size(), 2);
  EXPECT_THAT(message_of([&] { open_pairs(root, {{"test_examples", int64_t{3}}}); }),
              AllOf(HasSubstr("test_examples = 3"), HasSubstr("there are 2")));
}

TEST(RetrievalTask, SaysWhatSplitsShare) {
  const TemporaryFolder root;
  write_aan(root);
  const OpenedTask opened = open_pairs(root);
  EXPECT_THAT(opened.notes, Contains("1 of 3 validation pairs are train pairs too, of 3 both texts stand in train"));
  EXPECT_THAT(opened.notes, Contains("1 of 2 test pairs are train pairs too, of 1 both texts stand in train"));
}

TEST(RetrievalTask, OtherDataThanTheOfficialNeedPartial) {
  const TemporaryFolder root;
  const Stream subset(1, "subset");
  const Task& task = find_task("retrieval");
  EXPECT_THAT(message_of<DataError>([&] { task.open({}, root.path, subset); }),
              AllOf(HasSubstr("new_aan_pairs.train.tsv"), HasSubstr("lra_release.gz")));
  EXPECT_THAT(message_of<DataError>([&] { task.facts({}, root.path); }), HasSubstr("lra_release.gz"));
  write_aan(root);
  write_scisummnet(root);
  EXPECT_THAT(message_of<DataError>([&] { task.open({}, root.path, subset); }),
              AllOf(HasSubstr("6 train pairs, not the 147086"), HasSubstr("partial = true")));
  EXPECT_THAT(message_of<DataError>([&] { task.open({{"source", std::string("scisummnet")}}, root.path, subset); }),
              HasSubstr("not the known stand-in"));
  EXPECT_EQ(open_pairs(root, {{"source", std::string("scisummnet")}}).train->size(), 4);
}

TEST(DataRetrievalTask, TheStandInOpens) {
  const char* root = std::getenv("SPT_DATA");
  if (root == nullptr || !formats::find_scisummnet(root)) GTEST_SKIP() << "no aan/aan_scisummnet.tar.xz below SPT_DATA";
  const OptionMap options = {{"source", std::string("scisummnet")}};
  const OpenedTask opened = find_task("retrieval").open(options, root, Stream(1, "subset"));
  EXPECT_EQ(opened.train->size(), 1832);
  EXPECT_EQ(opened.validation->size(), 228);
  EXPECT_EQ(opened.test->size(), 228);
  EXPECT_FALSE(opened.facts.partial);
  EXPECT_EQ(opened.facts.train_lengths.back().first, 4000);
  int64_t cited = 0;
  for (int64_t i = 0; i < opened.test->size(); ++i) cited += opened.test->label(i);
  EXPECT_EQ(cited, 115);
  for (const std::string& note : opened.notes) std::cout << note << "\n";
  EXPECT_EQ(opened.facts.vocabulary, 192);
}

}  // namespace
}  // namespace spt::tasks
