#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "harness/base/hash.h"
#include "tasks/formats/cifar.h"
#include "tasks/formats/compressed.h"
#include "tasks/formats/idx.h"
#include "tasks/formats/images_dataset.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

std::string images_idx(int64_t n, int64_t side = 28) {
  return format_idx({.shape = {n, side, side}, .values = std::vector<uint8_t>(n * side * side, 3)});
}

std::string labels_idx(std::vector<uint8_t> labels) {
  return format_idx({.shape = {static_cast<int64_t>(labels.size())}, .values = labels});
}

void write_small_fashion(const TemporaryFolder& root) {
  root.write("fashion/train-images-idx3-ubyte", images_idx(3));
  root.write("fashion/train-labels-idx1-ubyte.gz", pack_gzip(labels_idx({0, 9, 4})));
  root.write("fashion/t10k-images-idx3-ubyte", images_idx(2));
  root.write("fashion/t10k-labels-idx1-ubyte", labels_idx({1, 2}));
}

std::string cifar_bytes(int64_t n, uint8_t label) {
  ImageSet images{.n = n,
                  .channels = 3,
                  .height = 32,
                  .width = 32,
                  .pixels = std::vector<uint8_t>(n * 3072, label),
                  .labels = std::vector<uint8_t>(n, label)};
  return format_cifar(images);
}

TEST(FashionData, PartialTakesOtherFilesAndHashesThem) {
  const TemporaryFolder root;
  write_small_fashion(root);
  const ImageData data = load_fashion(root.path, true);
  EXPECT_EQ(data.train.n, 3);
  EXPECT_EQ(data.test.n, 2);
  EXPECT_THAT(data.train.labels, ::testing::ElementsAre(0, 9, 4));
  EXPECT_FALSE(data.official);
  EXPECT_EQ(data.data_hash, verify(manifest("fashion"), root.path).data_hash());
  EXPECT_NE(data.data_hash, official_hash(manifest("fashion")));
}

TEST(FashionData, WhatWasUnpackedIsKeptAndADamagedCopyMadeAgain) {
  const TemporaryFolder root;
  write_small_fashion(root);
  const std::string hash = load_fashion(root.path, true).data_hash;
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(root.path / "cache")) kept.push_back(entry.path());
  ASSERT_EQ(kept.size(), 1u);  // of the one packed file
  const std::string good = read_file(kept[0]);
  for (const std::string& damaged : {std::string(), good.substr(0, 70), good + "x", std::string(good.size(), '0')}) {
    write_file_atomically(kept[0], damaged);
    EXPECT_EQ(load_fashion(root.path, true).data_hash, hash);
    EXPECT_EQ(read_file(kept[0]), good);
  }
}

TEST(FashionData, NothingIsKeptWhereTheFolderIsMarkedReadOnly) {
  const TemporaryFolder root;
  write_small_fashion(root);
  std::filesystem::permissions(root.path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  load_fashion(root.path, true);
  EXPECT_FALSE(std::filesystem::exists(root.path / "cache"));
  std::filesystem::permissions(root.path, std::filesystem::perms::owner_all);
}

TEST(FashionData, OtherFilesAreRefusedUnlessPartial) {
  const TemporaryFolder root;
  write_small_fashion(root);
  EXPECT_THAT(message_of<DataError>([&] { load_fashion(root.path, false); }),
              AllOf(HasSubstr("not the published file"), HasSubstr("partial = true")));
}

TEST(FashionData, FilesThatDoNotFitOneAnotherAreRefused) {
  const TemporaryFolder root;
  write_small_fashion(root);
  root.write("fashion/t10k-labels-idx1-ubyte", labels_idx({1, 2, 3}));
  EXPECT_THAT(message_of<DataError>([&] { load_fashion(root.path, true); }), HasSubstr("3 labels for 2 images"));
  root.write("fashion/t10k-labels-idx1-ubyte", labels_idx({1, 10}));
  EXPECT_THAT(message_of<DataError>([&] { load_fashion(root.path, true); }), HasSubstr("label 10 at 1"));
  root.write("fashion/t10k-images-idx3-ubyte", images_idx(2, 27));
  EXPECT_THAT(message_of<DataError>([&] { load_fashion(root.path, true); }), HasSubstr("27 x 27"));
  std::filesystem::remove(root.path / "fashion/t10k-images-idx3-ubyte");
  EXPECT_THAT(message_of<DataError>([&] { load_fashion(root.path, true); }),
              AllOf(HasSubstr("missing t10k-images"), HasSubstr("spt-bench data fetch fashion")));
}

TEST(ImageCounts, OfficialSetsHaveTheirPublishedSizes) {
  const ImageCounts fashion = fashion_counts(official_files(manifest("fashion")));
  EXPECT_EQ(fashion.train, 60'000);
  EXPECT_EQ(fashion.test, 10'000);
  const ImageCounts cifar = cifar10_counts(official_files(manifest("image")));
  EXPECT_EQ(cifar.train, 50'000);
  EXPECT_EQ(cifar.test, 10'000);
}

TEST(CifarData, MissingBatchSaysWhatToRun) {
  const TemporaryFolder root;
  EXPECT_THAT(message_of<DataError>([&] { load_cifar10(root.path, false); }),
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("spt-bench data fetch image"), HasSubstr((root.path / "cifar10").string()),
                    ::testing::Not(HasSubstr("partial"))));
  EXPECT_THAT(message_of<DataError>([&] { load_cifar10(root.path, true); }), HasSubstr("missing"));
}

TEST(CifarData, PartialRunsOnTheBatchesThereAre) {
  const TemporaryFolder root;
  root.write("cifar10/data_batch_2.bin", cifar_bytes(2, 5));
  root.write("cifar10/data_batch_4.bin.gz", pack_gzip(cifar_bytes(3, 6)));
  EXPECT_THAT(message_of<DataError>([&] { load_cifar10(root.path, true); }), HasSubstr("test_batch.bin"));
  root.write("cifar10/test_batch.bin", cifar_bytes(1, 7));
  const ImageData data = load_cifar10(root.path, true);
  EXPECT_THAT(data.train.labels, ::testing::ElementsAre(5, 5, 6, 6, 6));
  EXPECT_EQ(data.test.n, 1);
  ASSERT_EQ(data.files.size(), 3u);
  EXPECT_EQ(data.files[1].name, "data_batch_4.bin");
  EXPECT_EQ(data.data_hash, verify(manifest("image"), root.path).data_hash());
  root.write("cifar10/data_batch_4.bin.gz", "damaged");
  EXPECT_THAT(message_of<DataError>([&] { load_cifar10(root.path, true); }), HasSubstr("data_batch_4.bin.gz"));
}

/// Data that are too large for the source tree: the folder named by SPT_DATA.
std::filesystem::path real_data() {
  const char* root = std::getenv("SPT_DATA");
  return root == nullptr ? "" : root;
}

TEST(DataCifar, RealBatchesArePublishedOnesAndPartialNeedsAsking) {
  const auto root = real_data();
  if (!data_folder(manifest("image"), root)) GTEST_SKIP() << "SPT_DATA names no folder with cifar10/";
  const Verification found = verify(manifest("image"), root);
  for (const FileCheck& file : found.files) EXPECT_NE(file.state, FileState::kDifferent) << file.name;
  const ImageData data = load_cifar10(root, true);
  EXPECT_EQ(data.train.n % 10'000, 0);
  EXPECT_EQ(data.test.n, 10'000);
  EXPECT_EQ(data.official, found.official());
  const std::string refused = found.official() ? "partial = true" : message_of<DataError>([&] { load_cifar10(root, false); });
  EXPECT_THAT(refused, HasSubstr("partial = true"));
  for (int label = 0; label < 10; ++label) EXPECT_EQ(std::count(data.test.labels.begin(), data.test.labels.end(), label), 1000);
}

TEST(DataFashion, PublishedSetHasItsSizesAndTheScalingConstants) {
  if (!verify(manifest("fashion"), real_data()).official())
    GTEST_SKIP() << "Fashion-MNIST is neither below SPT_DATA nor installed (package dataset-fashion-mnist)";
  const ImageData data = load_fashion(real_data(), false);
  EXPECT_TRUE(data.official);
  EXPECT_EQ(data.data_hash, official_hash(manifest("fashion")));
  EXPECT_EQ(data.train.n, 60'000);
  EXPECT_EQ(data.test.n, 10'000);
  double sum = 0;
  double squares = 0;
  for (const uint8_t p : data.train.pixels) {
    sum += p;
    squares += static_cast<double>(p) * p;
  }
  const double n = static_cast<double>(data.train.pixels.size());
  const double mean = sum / n / 255;
  EXPECT_NEAR(mean, fashion_scaling().mean[0], 5e-5);
  EXPECT_NEAR(std::sqrt(squares / n / 255 / 255 - mean * mean), fashion_scaling().std[0], 5e-5);
}

}  // namespace
}  // namespace spt::formats
