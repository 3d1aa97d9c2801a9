#include "tasks/image_task.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tasks/formats/cifar.h"
#include "tests/formats/image_files.h"

namespace spt::tasks {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const std::filesystem::path kNoData = "no-such-data-root";

/// Distinct images of class i % 10 in CIFAR-10's layout.
std::string some_cifar(int64_t n, uint8_t shade) {
  formats::ImageSet images{.n = n, .channels = 3, .height = 32, .width = 32, .pixels = std::vector<uint8_t>(n * 3072, shade), .labels = {}};
  for (int64_t i = 0; i < n; ++i) {
    images.labels.push_back(static_cast<uint8_t>(i % 10));
    for (int64_t plane = 0; plane < 3; ++plane) images.pixels[i * 3072 + plane * 1024 + i] = static_cast<uint8_t>(shade + 100);
  }
  return formats::format_cifar(images);
}

void write_cifar(const TemporaryFolder& root) {
  root.write("image/data_batch_1.bin", some_cifar(200, 10));
  root.write("image/data_batch_3.bin", some_cifar(100, 20));
  root.write("image/test_batch.bin", some_cifar(50, 30));
}

std::vector<int64_t> ids(const Dataset& dataset) {
  std::vector<int64_t> all(dataset.size());
  for (int64_t i = 0; i < dataset.size(); ++i) all[i] = i;
  const at::Tensor tensor = dataset.batch(all).example_ids;
  return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()};
}

OpenedTask open_partial(const TemporaryFolder& root, OptionMap options, uint64_t seed = 1) {
  options["partial"] = true;
  return find_task("image").open(options, root.path, Stream(seed, "subset"));
}

TEST(ImageTask, FactsNeedNoData) {
  const TaskFacts fashion = find_task("fashion").facts(
      {{"patch", int64_t{4}}, {"train_examples", int64_t{2000}}, {"validation_examples", int64_t{500}}}, kNoData);
  EXPECT_EQ(fashion.max_length, 49);
  EXPECT_EQ(fashion.channels, 16);
  EXPECT_EQ(fashion.train_size, 2000);
  EXPECT_EQ(fashion.validation_size, 500);
  EXPECT_EQ(fashion.test_size, 10'000);
  EXPECT_EQ(fashion.data_hash, formats::official_hash(formats::manifest("fashion")));
  EXPECT_FALSE(fashion.partial);
  const TaskFacts image = find_task("image").facts({}, kNoData);
  EXPECT_EQ(image.max_length, 1024);
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.vocabulary, 0);
  EXPECT_EQ(image.outputs, 10);
  EXPECT_EQ(image.train_size, 45'000);
  EXPECT_EQ(image.validation_size, 5'000);
  EXPECT_EQ(image.mask_ratio, 0.5);
  EXPECT_EQ(image.metrics.front().name, "accuracy");
  EXPECT_THAT(image.train_lengths, ::testing::ElementsAre(std::pair<int64_t, int64_t>(1024, 45'000)));
}

TEST(ImageTask, WrongOptionsAreNamedWithWhatIsPossible) {
  const Task& fashion = find_task("fashion");
  EXPECT_THAT(message_of([&] { fashion.validate({{"patch", int64_t{3}}}); }),
              AllOf(HasSubstr("patch = 3"), HasSubstr("1, 2, 4, 7, 14, 28")));
  EXPECT_THAT(message_of([&] { fashion.validate({{"pach", int64_t{4}}}); }), HasSubstr("did you mean 'patch'"));
  EXPECT_THAT(message_of([&] { fashion.facts({{"train_examples", int64_t{55'001}}}, kNoData); }), HasSubstr("there are 55000"));
  EXPECT_THAT(message_of([&] { fashion.facts({{"validation_examples", int64_t{5'001}}}, kNoData); }), HasSubstr("there are 5000"));
  EXPECT_THAT(message_of([&] { fashion.facts({{"test_examples", int64_t{10'001}}}, kNoData); }), HasSubstr("there are 10000"));
  EXPECT_NE(message_of([&] { fashion.facts({{"split", std::string("other")}}, kNoData); }), "");
}

TEST(ImageTask, AbsentDataAreADataErrorThatSaysWhatToRun) {
  const Stream subset(1, "subset");
  EXPECT_THAT(message_of<DataError>([&] { find_task("image").open({}, kNoData, subset); }), HasSubstr("spt-bench data fetch image"));
  EXPECT_NE(message_of<DataError>([&] { find_task("image").facts({{"partial", true}}, kNoData); }), "");
}

TEST(ImageTask, PartialFactsAreThoseOfTheOpenedData) {
  const TemporaryFolder root;
  write_cifar(root);
  const OpenedTask opened = open_partial(root, {});
  const TaskFacts planned = find_task("image").facts({{"partial", true}}, root.path);
  EXPECT_EQ(opened.facts.train_size, 270);
  EXPECT_EQ(opened.facts.validation_size, 30);
  EXPECT_EQ(opened.facts.test_size, 50);
  EXPECT_TRUE(opened.facts.partial);
  EXPECT_EQ(planned.data_hash, opened.facts.data_hash);
  EXPECT_EQ(planned.train_size, opened.facts.train_size);
  EXPECT_EQ(planned.test_size, opened.facts.test_size);
  EXPECT_EQ(opened.train->size(), 270);
  EXPECT_EQ(opened.validation->size(), 30);
  EXPECT_EQ(opened.test->size(), 50);
}

TEST(ImageTask, SplitsAreDisjointStratifiedAndOfTheSplitSeedAlone) {
  const TemporaryFolder root;
  write_cifar(root);
  for (const char* split : {"stratified", "random"}) {
    const OpenedTask one = open_partial(root, {{"split", std::string(split)}}, 1);
    const OpenedTask two = open_partial(root, {{"split", std::string(split)}}, 2);
    EXPECT_EQ(ids(*one.validation), ids(*two.validation)) << split;
    std::set<int64_t> seen;
    for (const auto& dataset : {one.train, one.validation, one.test})
      for (const int64_t id : ids(*dataset)) EXPECT_TRUE(seen.insert(id).second) << split << id;
    EXPECT_EQ(seen.size(), 350u);
    EXPECT_NE(ids(*open_partial(root, {{"split", std::string(split)}, {"split_seed", int64_t{43}}}).validation), ids(*one.validation))
        << split;
  }
  const OpenedTask opened = open_partial(root, {});
  std::vector<int64_t> per_class(10);
  for (int64_t i = 0; i < opened.validation->size(); ++i) ++per_class[opened.validation->label(i)];
  EXPECT_THAT(per_class, ::testing::Each(3));
}

TEST(ImageTask, SubsetsAreNestedAndFollowTheJob) {
  const TemporaryFolder root;
  write_cifar(root);
  const auto train = [&](int64_t n, uint64_t seed) { return ids(*open_partial(root, {{"train_examples", n}}, seed).train); };
  const auto small = train(20, 1);
  const auto large = train(200, 1);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  EXPECT_NE(small, train(20, 2));
  const OpenedTask opened =
      open_partial(root, {{"train_examples", int64_t{20}}, {"validation_examples", int64_t{10}}, {"test_examples", int64_t{20}}});
  EXPECT_EQ(opened.unlabelled_train->size(), 270);
  EXPECT_EQ(opened.validation->size(), 10);
  const auto test = ids(*opened.test);
  EXPECT_EQ(test.size(), 20u);
  EXPECT_TRUE(std::is_sorted(test.begin(), test.end()));
  EXPECT_GE(test.front(), 300);
}

TEST(ImageTask, BatchHoldsTheStepsLabelsAndIdsOfItsExamples) {
  const TemporaryFolder root;
  write_cifar(root);
  const OpenedTask opened = open_partial(root, {{"patch", int64_t{8}}});
  const std::vector<int64_t> indices = {3, 0, 3};
  const Batch batch = opened.test->batch(indices);
  EXPECT_EQ(batch.values.sizes(), (std::vector<int64_t>{3, 16, 64}));
  EXPECT_EQ(batch.values.scalar_type(), torch::kFloat32);
  EXPECT_FALSE(batch.tokens.defined());
  EXPECT_TRUE(torch::equal(batch.lengths, torch::full({3}, 16, torch::kInt64)));
  EXPECT_TRUE(torch::equal(batch.labels, torch::tensor({3, 0, 3}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(batch.example_ids, torch::tensor({303, 300, 303}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(batch.values[0], batch.values[2]));
  // Test image 3 is grey 30 but for pixel 3, which is 130: in the first patch's first row.
  const auto scaled = [](float p) { return (p / 255.0f - 122.6f / 255.0f) / (61.0f / 255.0f); };
  EXPECT_NEAR(batch.values[0][0][3].item<float>(), scaled(130), 1e-6);
  EXPECT_NEAR(batch.values[0][0][2].item<float>(), scaled(30), 1e-6);
  EXPECT_EQ(opened.test->label(3), 3);
  EXPECT_EQ(opened.test->length(3), 16);
  EXPECT_THROW(opened.test->batch(std::vector<int64_t>{50}), std::logic_error);
  EXPECT_EQ(opened.test->batch({}).values.size(0), 0);
}

TEST(ImageTask, ScifarHasThreeChannelsOfTheSameFiles) {
  const TemporaryFolder root;
  write_cifar(root);
  const OpenedTask opened = find_task("scifar").open({{"partial", true}}, root.path, Stream(1, "subset"));
  EXPECT_EQ(opened.facts.channels, 3);
  EXPECT_EQ(opened.facts.max_length, 1024);
  EXPECT_EQ(opened.facts.data_hash, open_partial(root, {}).facts.data_hash);
  const Batch batch = opened.test->batch(std::vector<int64_t>{3});
  ASSERT_EQ(batch.values.sizes(), (std::vector<int64_t>{1, 1024, 3}));
  const float mean[] = {0.4914f, 0.4822f, 0.4465f}, std[] = {0.247f, 0.243f, 0.261f};
  for (int c = 0; c < 3; ++c) {  // pixel 3 is 130 in every plane, the others are 30
    EXPECT_NEAR(batch.values[0][3][c].item<float>(), (130 / 255.0f - mean[c]) / std[c], 1e-5) << c;
    EXPECT_NEAR(batch.values[0][4][c].item<float>(), (30 / 255.0f - mean[c]) / std[c], 1e-5) << c;
  }
  const TaskFacts patched = find_task("scifar").facts({{"patch", int64_t{4}}}, kNoData);
  EXPECT_EQ(patched.channels, 48);
  EXPECT_EQ(patched.max_length, 64);
  EXPECT_THAT(message_of<DataError>([&] { find_task("scifar").open({}, kNoData, Stream(1, "subset")); }), HasSubstr("data fetch scifar"));
}

TEST(ImageTask, CopiesBetweenSplitsAreNoted) {
  const TemporaryFolder root;
  write_cifar(root);
  EXPECT_THAT(open_partial(root, {}).notes, ::testing::Contains("0 of 50 test images have an exact copy in train"));
  root.write("image/test_batch.bin", some_cifar(200, 10));
  const OpenedTask opened = open_partial(root, {});
  EXPECT_THAT(opened.notes.back(), ::testing::MatchesRegex("1[0-9][0-9] of 200 test images have an exact copy in train"));
}

TEST(DataImageTask, FashionOpensAsPlanned) {
  const char* given = std::getenv("SPT_DATA");
  const std::filesystem::path root = given == nullptr ? "" : given;
  if (!formats::data_folder(formats::manifest("fashion"), root))
    GTEST_SKIP() << "Fashion-MNIST is neither below SPT_DATA nor installed (package dataset-fashion-mnist)";
  const OptionMap options = {{"patch", int64_t{4}}, {"train_examples", int64_t{2000}}, {"validation_examples", int64_t{500}}};
  const OpenedTask opened = find_task("fashion").open(options, root, Stream(1, "subset"));
  const TaskFacts planned = find_task("fashion").facts(options, root);
  EXPECT_EQ(opened.facts.data_hash, planned.data_hash);
  EXPECT_EQ(opened.train->size(), 2000);
  EXPECT_EQ(opened.validation->size(), 500);
  EXPECT_EQ(opened.test->size(), 10'000);
  EXPECT_EQ(opened.unlabelled_train->size(), 55'000);
  for (const std::string& note : opened.notes) std::cout << note << "\n";
  std::vector<int64_t> some(1000);
  for (int64_t i = 0; i < 1000; ++i) some[i] = i;
  const at::Tensor values = opened.unlabelled_train->batch(some).values;
  EXPECT_NEAR(values.mean().item<double>(), 0, 0.1);
  EXPECT_NEAR(values.std().item<double>(), 1, 0.1);
}

}  // namespace
}  // namespace spt::tasks
