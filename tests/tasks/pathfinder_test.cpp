#include "tasks/formats/pathfinder.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/split.h"
#include "tasks/task.h"
#include "tests/formats/image_files.h"

namespace spt::tasks {
namespace {

using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const std::filesystem::path kNoPathfinderData = "no-such-data-root";

std::vector<int64_t> pathfinder_ids(const Dataset& dataset) {
  std::vector<int64_t> all(static_cast<size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  const at::Tensor ids = dataset.batch(all).example_ids;
  return {ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel()};
}

/// 60 images of side 32 in the official layout.
void write_small_pathfinder(const TemporaryFolder& root) {
  formats::make_pathfinder_files(*formats::find_pathfinder_set("pathfinder32"), {.count = 60, .seed = 5, .threads = 1, .batch = 25},
                                 root.path, [](const std::string&) {});
}

OpenedTask open_pathfinder(const std::string& task, const OptionMap& options, const std::filesystem::path& root = kNoPathfinderData,
                           uint64_t seed = 1) {
  return find_task(task).open(options, root, Stream(seed, "subset"));
}

TEST(PathfinderTask, FactsNeedNoData) {
  const std::vector<std::pair<std::string, int64_t>> tasks = {{"pathfinder32", 1024}, {"pathx", 16384}, {"pathx256", 65536}};
  for (const auto& [name, length] : tasks) {
    const TaskFacts facts = find_task(name).facts({}, kNoPathfinderData);
    EXPECT_EQ(facts.max_length, length);
    EXPECT_EQ(facts.channels, 1);
    EXPECT_EQ(facts.outputs, 2);
    EXPECT_EQ(facts.value_loss, "levels");
    EXPECT_EQ(facts.mask_ratio, 0.5);
    EXPECT_EQ(facts.train_size, 160'000);
    EXPECT_EQ(facts.validation_size, 20'000);
    EXPECT_EQ(facts.test_size, 20'000);
    EXPECT_THAT(facts.data_source, HasSubstr("spt-pathfinder"));
  }
  const TaskFacts patches =
      find_task("pathx").facts({{"pool", int64_t{2}}, {"patch", int64_t{4}}, {"train_examples", int64_t{100}}}, kNoPathfinderData);
  EXPECT_EQ(patches.max_length, 256);
  EXPECT_EQ(patches.channels, 16);
  EXPECT_EQ(patches.value_loss, "mae");
  EXPECT_EQ(patches.train_size, 100);
}

TEST(PathfinderTask, DataHashFollowsTheGeneratorAndNothingElse) {
  const auto hash = [](const OptionMap& options) { return find_task("pathfinder32").facts(options, kNoPathfinderData).data_hash; };
  EXPECT_EQ(hash({}), hash({{"train_examples", int64_t{10}}}));
  EXPECT_NE(hash({}), hash({{"generator_seed", int64_t{1}}}));
  EXPECT_NE(hash({}), find_task("pathx").facts({}, kNoPathfinderData).data_hash);
}

TEST(PathfinderTask, GeneratedExamplesAreTheGeneratorsImages) {
  const OptionMap options = {
      {"train_examples", int64_t{20}}, {"validation_examples", int64_t{10}}, {"test_examples", int64_t{6}}, {"generator_seed", int64_t{4}}};
  const OpenedTask opened = open_pathfinder("pathfinder32", options);
  EXPECT_EQ(opened.train->size(), 20);
  EXPECT_EQ(opened.unlabelled_train->size(), 160'000);
  EXPECT_EQ(opened.facts.data_hash, find_task("pathfinder32").facts(options, kNoPathfinderData).data_hash);
  const formats::PathfinderGenerator generator(formats::pathfinder_options(32), 4);
  std::set<int64_t> seen;
  for (const auto& dataset : {opened.train, opened.validation, opened.test}) {
    std::vector<int64_t> all(static_cast<size_t>(dataset->size()));
    std::iota(all.begin(), all.end(), 0);
    for (int repeat = 0; repeat < 2; ++repeat) {  // drawn, then kept
      const Batch batch = dataset->batch(all);
      EXPECT_EQ(batch.values.sizes(), (std::vector<int64_t>{dataset->size(), 1024, 1}));
      for (int64_t i = 0; i < dataset->size(); ++i) {
        const auto id = batch.example_ids[i].item<int64_t>();
        const formats::PathfinderImage image = generator.image(static_cast<uint64_t>(id));
        EXPECT_EQ(batch.labels[i].item<int64_t>(), image.label);
        EXPECT_EQ(dataset->label(i), image.label);
        const at::Tensor pixels = torch::tensor(std::vector<int64_t>(image.pixels.begin(), image.pixels.end()));
        EXPECT_TRUE(torch::equal(((batch.values[i].flatten().to(torch::kFloat64) * 0.5 + 0.5) * 255).round().to(torch::kInt64), pixels));
        EXPECT_EQ(seen.insert(id).second, repeat == 0);
      }
    }
  }
}

TEST(PathfinderTask, SubsetsAreNestedAndFollowTheJob) {
  const auto train = [](int64_t n, uint64_t seed) {
    return pathfinder_ids(*open_pathfinder("pathfinder32", {{"train_examples", n}}, kNoPathfinderData, seed).train);
  };
  const auto small = train(10, 1), large = train(30, 1);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  EXPECT_NE(small, train(10, 2));
}

TEST(PathfinderTask, FilesAreSplitAsPublished) {
  const TemporaryFolder root;
  write_small_pathfinder(root);
  const OptionMap options = {{"source", std::string("lra")}, {"partial", true}, {"split", std::string("random")}};
  const OpenedTask opened = open_pathfinder("pathfinder32", options, root.path);
  const auto pieces = formats::random_split(60, std::vector<int64_t>{48, 6, 6}, 42);
  EXPECT_EQ(pathfinder_ids(*opened.train), pieces[0]);
  EXPECT_EQ(pathfinder_ids(*opened.validation), pieces[1]);
  EXPECT_EQ(pathfinder_ids(*opened.test), pieces[2]);
  EXPECT_TRUE(opened.facts.partial);
  EXPECT_EQ(opened.facts.data_hash, find_task("pathfinder32").facts(options, root.path).data_hash);
  const formats::PathfinderGenerator generator(formats::pathfinder_options(32), 5);
  const Batch batch = opened.test->batch(std::vector<int64_t>{2});
  EXPECT_EQ(batch.labels[0].item<int64_t>(), generator.label(static_cast<uint64_t>(pieces[2][2])));
}

TEST(PathfinderTask, AStratifiedValidationLeavesThePublishedTestAlone) {
  const TemporaryFolder root;
  write_small_pathfinder(root);
  const OpenedTask opened = open_pathfinder("pathfinder32", {{"source", std::string("lra")}, {"partial", true}}, root.path);
  EXPECT_EQ(pathfinder_ids(*opened.test), formats::random_split(60, std::vector<int64_t>{48, 6, 6}, 42)[2]);
  std::set<int64_t> seen;
  for (const auto& dataset : {opened.train, opened.validation, opened.test})
    for (const int64_t id : pathfinder_ids(*dataset)) EXPECT_TRUE(seen.insert(id).second);
  EXPECT_EQ(seen.size(), 60u);
}

TEST(PathfinderTask, WrongOptionsAndAbsentDataSayWhatToDo) {
  const Task& task = find_task("pathfinder32");
  EXPECT_THAT(message_of([&] { task.validate({{"partial", true}}); }), HasSubstr("source = \"lra\""));
  EXPECT_THAT(message_of([&] { task.validate({{"source", std::string("lra")}, {"generator_seed", int64_t{1}}}); }),
              HasSubstr("source = \"generated\""));
  EXPECT_THAT(message_of([&] { task.validate({{"patch", int64_t{3}}}); }), HasSubstr("1, 2, 4, 8, 16, 32"));
  EXPECT_THAT(message_of([&] { task.facts({{"train_examples", int64_t{160'001}}}, kNoPathfinderData); }), HasSubstr("there are 160000"));
  EXPECT_THAT(message_of<DataError>([&] { task.facts({{"source", std::string("lra")}}, kNoPathfinderData); }),
              HasSubstr("spt-bench data make pathfinder32"));
  const TemporaryFolder root;
  write_small_pathfinder(root);
  EXPECT_THAT(message_of<DataError>([&] { open_pathfinder("pathfinder32", {{"source", std::string("lra")}}, root.path); }),
              HasSubstr("60 images"));
}

}  // namespace
}  // namespace spt::tasks
