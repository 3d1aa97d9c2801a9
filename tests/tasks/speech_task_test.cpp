#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <set>

#include "tasks/formats/speech.h"
#include "tasks/task.h"
#include "tests/formats/wav_files.h"

namespace spt::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const std::filesystem::path kNoSpeech = "no-such-data-root";

OpenedTask open_clips(const TemporaryFolder& root, OptionMap options = {}, uint64_t seed = 1) {
  options["partial"] = true;
  return find_task("speech").open(options, root.path, Stream(seed, "subset"));
}

TEST(SpeechTask, FactsNeedNoDataForTheWholeRelease) {
  const TaskFacts facts = find_task("speech").facts({}, kNoSpeech);
  EXPECT_EQ(facts.outputs, 35);
  EXPECT_EQ(facts.channels, 1);
  EXPECT_EQ(facts.max_length, 16000);
  EXPECT_EQ(facts.mask_ratio, 0.25);
  EXPECT_EQ(facts.train_size, 84'843);
  EXPECT_EQ(facts.validation_size, 9'981);
  EXPECT_EQ(facts.test_size, 11'005);
  EXPECT_EQ(facts.data_hash, formats::speech_release("v0.02").sha256);
  const TaskFacts old = find_task("speech").facts({{"release", std::string("v0.01")}, {"resolution", int64_t{3}}}, kNoSpeech);
  EXPECT_EQ(old.outputs, 30);
  EXPECT_EQ(old.max_length, 5334);
  EXPECT_EQ(old.train_size + old.validation_size + old.test_size, 64'721);
  EXPECT_THAT(message_of<DataError>([] { find_task("speech").facts({{"words", std::string("bed cat")}}, kNoSpeech); }),
              HasSubstr("speech_commands_v0.02.tar.gz"));
}

TEST(SpeechTask, WrongWordsAreNamed) {
  const auto error = [](const char* words, const char* release = "v0.02") {
    return message_of([&] { find_task("speech").validate({{"words", std::string(words)}, {"release", std::string(release)}}); });
  };
  EXPECT_EQ(error("bed zero"), "");
  EXPECT_THAT(error("bed zerro"), AllOf(HasSubstr("'zerro'"), HasSubstr("did you mean 'zero'")));
  EXPECT_THAT(error("bed learn", "v0.01"), HasSubstr("word of v0.01 'learn'"));
  EXPECT_THAT(error("bed bed"), HasSubstr("stands twice"));
  EXPECT_THAT(error("bed"), HasSubstr("two are the least"));
}

TEST(SpeechTask, SplitsAreThoseOfTheListsAndClassesThoseOfTheWords) {
  const TemporaryFolder root;
  write_speech(root);
  const OpenedTask opened = open_clips(root, {{"words", std::string("zero bed")}});
  EXPECT_EQ(opened.train->size(), 4);
  EXPECT_EQ(opened.validation->size(), 2);
  EXPECT_EQ(opened.test->size(), 2);
  EXPECT_EQ(opened.facts.outputs, 2);
  EXPECT_EQ(opened.test->label(0), 1);  // bed comes first by name and is the second class
  EXPECT_EQ(opened.test->label(1), 0);
  const TaskFacts planned = find_task("speech").facts({{"words", std::string("zero bed")}, {"partial", true}}, root.path);
  EXPECT_EQ(planned.data_hash, opened.facts.data_hash);
  EXPECT_EQ(planned.train_size, 4);
  std::set<int64_t> ids;
  for (const auto& split : {opened.train, opened.validation, opened.test})
    for (int64_t i = 0; i < split->size(); ++i)
      EXPECT_TRUE(ids.insert(split->batch(std::vector<int64_t>{i}).example_ids[0].item<int64_t>()).second);
}

TEST(SpeechTask, ABatchIsStandardisedOverTrain) {
  const TemporaryFolder root;
  write_speech(root);
  const OpenedTask opened = open_clips(root, {{"words", std::string("bed cat zero")}});
  const Batch batch = opened.train->batch(std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  ASSERT_EQ(batch.values.sizes(), (std::vector<int64_t>{6, 16000, 1}));
  EXPECT_NEAR(batch.values.select(1, 500).mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(batch.values.select(1, 500).std().item<double>(), 1, 1e-2);  // epsilon beside the spread
  EXPECT_TRUE(torch::equal(batch.labels, torch::tensor({0, 0, 1, 1, 2, 2})));
  EXPECT_TRUE(torch::equal(batch.lengths, torch::full({6}, 16000)));
  const Batch twice = open_clips(root, {{"words", std::string("bed cat zero")}, {"scaling", std::string("twice")}})
                          .train->batch(std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  EXPECT_LT(twice.values.select(1, 500).std().item<double>(), 0.1);  // as published: the epsilon dominates
  const Batch fourth = open_clips(root, {{"words", std::string("bed cat zero")}, {"resolution", int64_t{4}}})
                           .train->batch(std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(torch::equal(fourth.values, batch.values.slice(1, 0, 16000, 4)));
}

TEST(SpeechTask, OtherDataThanTheWholeReleaseNeedPartial) {
  const TemporaryFolder root;
  write_speech(root);
  EXPECT_THAT(message_of<DataError>([&] { find_task("speech").open({}, root.path, Stream(1, "subset")); }),
              AllOf(HasSubstr("6 train"), HasSubstr("partial = true")));
  EXPECT_THAT(message_of<DataError>([&] { find_task("speech").open({}, kNoSpeech, Stream(1, "subset")); }),
              HasSubstr("speech_commands_v0.02.tar.gz"));
  EXPECT_THAT(message_of([&] { open_clips(root, {{"train_examples", int64_t{7}}}); }), HasSubstr("there are 6"));
  EXPECT_THAT(message_of<DataError>([&] { open_clips(root, {{"words", std::string("dog down")}}); }), HasSubstr("no train clips"));
  EXPECT_EQ(open_clips(root, {{"train_examples", int64_t{2}}}).train->size(), 2);
}

TEST(DataSpeechTask, TheNineFullWordsOpen) {
  const char* root = std::getenv("SPT_DATA");
  if (root == nullptr || !formats::find_speech(root, "v0.01")) GTEST_SKIP() << "no Speech Commands v0.01 below SPT_DATA";
  const OptionMap options = {
      {"release", std::string("v0.01")}, {"words", std::string("down eight five go left one right up zero")}, {"partial", true}};
  const OpenedTask opened = find_task("speech").open(options, root, Stream(1, "subset"));
  EXPECT_EQ(opened.facts.outputs, 9);
  EXPECT_GT(opened.train->size(), 1000);
  EXPECT_GT(opened.validation->size(), 400);
  std::vector<int64_t> some(256);
  for (int64_t i = 0; i < 256; ++i) some[static_cast<size_t>(i)] = i;
  EXPECT_NEAR(opened.train->batch(some).values.std().item<double>(), 1, 0.2);
  for (const std::string& note : opened.notes) std::cout << note << "\n";
}

}  // namespace
}  // namespace spt::tasks
