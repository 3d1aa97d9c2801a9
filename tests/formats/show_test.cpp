#include "tasks/formats/show.h"

#include <gmock/gmock.h>

#include "tasks/formats/cifar.h"
#include "tasks/formats/contact_sheet.h"
#include "tasks/formats/pathfinder.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

std::string shown(const TemporaryFolder& root, const std::string& task, int64_t n) {
  std::string text;
  show_data(root.path, task, {.n = n, .out = root.path / "picture"}, [&](const std::string& line) { text += line + "\n"; });
  return text;
}

TEST(ContactSheet, PicturesStandInRowsEnlargedByAWholeFactor) {
  std::vector<Picture> pictures;
  for (uint8_t k = 0; k < 3; ++k)
    pictures.push_back(
        {.height = 64, .width = 64, .channels = 1, .pixels = std::vector<uint8_t>(64 * 64, static_cast<uint8_t>(10 * k + 5))});
  const Picture sheet = contact_sheet(pictures, 2);
  EXPECT_EQ(sheet.width, 2 * 132 + 4);
  EXPECT_EQ(sheet.height, 2 * 132 + 4);
  EXPECT_EQ(sheet.pixels[0], 96);
  EXPECT_EQ(sheet.pixels[4 * sheet.width + 4], 5);
  EXPECT_EQ(sheet.pixels[131 * sheet.width + 131], 5);
  EXPECT_EQ(sheet.pixels[4 * sheet.width + 136], 15);
  EXPECT_EQ(sheet.pixels[136 * sheet.width + 4], 25);
  EXPECT_EQ(sheet.pixels[136 * sheet.width + 136], 96);
}

TEST(Waveforms, HaveALineAChannelAndEscapedTitles) {
  const std::vector<Waveform> signals = {{"a < b & c", {{0, 1, 0}, {2, 2, 2}}}};
  const std::string svg = waveform_svg(signals);
  EXPECT_THAT(svg, AllOf(HasSubstr("a &lt; b &amp; c"), HasSubstr("<svg"), HasSubstr("</svg>")));
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 2u);
}

TEST(ShowData, PathfinderNeedsNoDataAndWritesASheet) {
  const TemporaryFolder root;
  const std::string text = shown(root, "pathx", 5);
  EXPECT_THAT(text, AllOf(HasSubstr("generated"), HasSubstr("labels of row 2")));
  const Picture sheet = read_grey_png(root.path / "picture", 4096);
  EXPECT_EQ(sheet.width, 3 * 132 + 4);
  EXPECT_EQ(sheet.height, 2 * 132 + 4);
  const PathfinderImage first = PathfinderGenerator(pathfinder_options(128), 0).image(0);
  for (int64_t x = 0; x < 128; ++x) EXPECT_EQ(sheet.pixels[(4 + 64) * sheet.width + 4 + x], first.pixels[64 * 128 + x]);
}

TEST(ShowData, ListopsAreExpressionsWithTheirValues) {
  const TemporaryFolder root;
  root.write("listops/basic_train.tsv", "Source\tTarget\n( ( ( [MAX 1 ) 2 ) ] )\t2\n");
  EXPECT_THAT(shown(root, "listops", 3), HasSubstr("2: [MAX 1 2 ]"));
}

TEST(ShowData, ImagesOfFilesAreShownWithTheirLabels) {
  const TemporaryFolder root;
  ImageSet images{.n = 2, .channels = 3, .height = 32, .width = 32, .pixels = std::vector<uint8_t>(2 * 3072, 50), .labels = {3, 8}};
  root.write("image/data_batch_1.bin", format_cifar(images));
  root.write("image/test_batch.bin", format_cifar(images));
  EXPECT_THAT(shown(root, "image", 8), HasSubstr("labels of row 1: 3 8"));
  EXPECT_EQ(read_grey_png(root.path / "picture", 4096).pixels[10 * (2 * 132 + 4) + 10], 50);
}

TEST(ShowData, WhatCannotBeShownIsAnErrorAndLeavesNoFile) {
  const TemporaryFolder root;
  EXPECT_THAT(message_of([&] { shown(root, "pathy", 3); }), AllOf(HasSubstr("pathx"), HasSubstr("listops")));
  EXPECT_THAT(message_of([&] { shown(root, "pathx", 0); }), HasSubstr("n is 0"));
  EXPECT_THAT(message_of<DataError>([&] { shown(root, "image", 3); }), HasSubstr("data fetch image"));
  EXPECT_FALSE(std::filesystem::exists(root.path / "picture"));
}

}  // namespace
}  // namespace spt::formats
