#include "tasks/formats/cifar.h"

#include <gmock/gmock.h>

#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

ImageSet two_images() {
  ImageSet images{.n = 2, .channels = 3, .height = 32, .width = 32, .pixels = {}, .labels = {9, 0}};
  for (int i = 0; i < 2 * 3072; ++i) images.pixels.push_back(static_cast<uint8_t>(i * 7));
  return images;
}

TEST(Cifar, WritesAndReadsTheSameImages) {
  const ImageSet images = parse_cifar(format_cifar(two_images()), "x");
  EXPECT_EQ(images.n, 2);
  EXPECT_EQ(images.pixels, two_images().pixels);
  EXPECT_EQ(images.labels, two_images().labels);
}

TEST(Cifar, RecordIsALabelThenThreePlanes) {
  const std::string bytes = format_cifar(two_images());
  EXPECT_EQ(bytes.size(), 2u * 3073u);
  EXPECT_EQ(bytes[0], 9);
  const ImageSet images = parse_cifar(bytes, "x");
  EXPECT_EQ(images.image(1)[1024], static_cast<uint8_t>(bytes[3073 + 1 + 1024]));  // first green pixel
}

TEST(Cifar, EveryTruncationIsADataErrorNamingThePlace) {
  const std::string whole = format_cifar(two_images());
  for (size_t n = 0; n < whole.size(); ++n) {
    if (n == 3073) continue;  // one whole record: known as too few by the caller, who says how many
    EXPECT_THAT(message_of<DataError>([&] { parse_cifar(std::string_view(whole).substr(0, n), "'two'"); }), HasSubstr("'two'")) << n;
  }
}

TEST(Cifar, LabelAboveNineIsRefused) {
  std::string bytes = format_cifar(two_images());
  bytes[3073] = 10;
  EXPECT_THAT(message_of<DataError>([&] { parse_cifar(bytes, "here"); }), HasSubstr("record 1 has label 10"));
}

TEST(Cifar, FileMustHoldAsManyImagesAsAsked) {
  const TemporaryFolder folder;
  folder.write("b.bin", format_cifar(two_images()));
  EXPECT_EQ(read_cifar(folder.path / "b.bin").n, 2);
  EXPECT_EQ(read_cifar(folder.path / "b.bin", 2).n, 2);
  EXPECT_THAT(message_of<DataError>([&] { read_cifar(folder.path / "b.bin", 3); }), HasSubstr("2 images, expected 3"));
  EXPECT_THROW(read_cifar(folder.path / "b.bin", 1), DataError);
}

TEST(Cifar, AppendedImagesKeepTheirOrder) {
  ImageSet all;
  append_images(all, two_images());
  append_images(all, two_images());
  EXPECT_EQ(all.n, 4);
  EXPECT_THAT(all.labels, ::testing::ElementsAre(9, 0, 9, 0));
  EXPECT_TRUE(std::equal(all.image(3).begin(), all.image(3).end(), all.image(1).begin()));
}

TEST(Luma, MatchesPillowOnCornersAndIsMonotone) {
  EXPECT_EQ(luma(0, 0, 0), 0);
  EXPECT_EQ(luma(255, 255, 255), 255);
  EXPECT_EQ(luma(255, 0, 0), 76);  // Image.new("RGB", (1, 1), (255, 0, 0)).convert("L")
  EXPECT_EQ(luma(0, 255, 0), 150);
  EXPECT_EQ(luma(0, 0, 255), 29);
  for (int v = 0; v < 256; ++v) EXPECT_EQ(luma(v, v, v), v);
}

TEST(Luma, GreyImagesTakeThreePlanesOfEachPixel) {
  const ImageSet grey = to_grey(two_images());
  ASSERT_EQ(grey.pixels.size(), 2u * 1024u);
  const auto rgb = two_images();
  EXPECT_EQ(grey.image(1)[5], luma(rgb.image(1)[5], rgb.image(1)[1024 + 5], rgb.image(1)[2048 + 5]));
  EXPECT_EQ(grey.labels, rgb.labels);
}

}  // namespace
}  // namespace spt::formats
