#include "tasks/formats/image.h"

#include <gmock/gmock.h>

#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using testing_files::message_of;

const PixelScaling kBytes = {{0.0f}, {1.0f / 255.0f}};  // gives the byte itself, nearly

std::vector<uint8_t> counting(int64_t n) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < n; ++i) bytes.push_back(static_cast<uint8_t>(i));
  return bytes;
}

std::vector<int> rounded(const std::vector<float>& values) {
  std::vector<int> out;
  for (const float v : values) out.push_back(static_cast<int>(v + 0.5f));
  return out;
}

TEST(ImageSteps, PixelsFollowRowByRow) {
  const ImageSteps steps(1, 2, 3, {}, kBytes, "t");
  EXPECT_EQ(steps.length(), 6);
  EXPECT_EQ(steps.width(), 1);
  EXPECT_THAT(rounded(steps.steps(counting(6))), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ImageSteps, PatchIsOneStepRowMajorInside) {
  const ImageSteps steps(1, 4, 4, {.pool = 1, .patch = 2}, kBytes, "t");
  EXPECT_EQ(steps.length(), 4);
  EXPECT_EQ(steps.width(), 4);
  EXPECT_THAT(rounded(steps.steps(counting(16))), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
}

TEST(ImageSteps, ChannelsComeLast) {
  const ImageSteps steps(3, 1, 2, {}, {{0, 0, 0}, {1 / 255.0f, 1 / 255.0f, 1 / 255.0f}}, "t");
  EXPECT_EQ(steps.width(), 3);
  EXPECT_THAT(rounded(steps.steps(std::vector<uint8_t>{10, 11, 20, 21, 30, 31})), ElementsAre(10, 20, 30, 11, 21, 31));
}

TEST(ImageSteps, PoolingTakesTheMeanOfABlock) {
  const ImageSteps steps(1, 2, 4, {.pool = 2, .patch = 1}, kBytes, "t");
  EXPECT_THAT(steps.steps(std::vector<uint8_t>{0, 1, 255, 255, 2, 3, 255, 255}), ElementsAre(FloatEq(1.5f), FloatEq(255.0f)));
}

TEST(ImageSteps, PoolComesBeforePatch) {
  const ImageSteps steps(1, 8, 8, {.pool = 2, .patch = 2}, kBytes, "t");
  EXPECT_EQ(steps.length(), 4);
  EXPECT_EQ(steps.width(), 4);
  const std::vector<float> values = steps.steps(counting(64));
  EXPECT_THAT(values[0], FloatEq((0 + 1 + 8 + 9) / 4.0f));
  EXPECT_THAT(values[1], FloatEq((2 + 3 + 10 + 11) / 4.0f));
  EXPECT_THAT(values[2], FloatEq((16 + 17 + 24 + 25) / 4.0f));
}

TEST(ImageSteps, GreyScalingIsTheFormulaInFloat32) {
  const ImageSteps steps(1, 16, 16, {}, cifar_grey_scaling(), "t");
  const std::vector<float> values = steps.steps(counting(256));
  for (int p = 0; p < 256; ++p) {
    const float unit = static_cast<float>(p) / 255.0f;
    EXPECT_EQ(values[p], (unit - static_cast<float>(122.6 / 255)) / static_cast<float>(61.0 / 255)) << p;
  }
}

TEST(ImageSteps, SizesThatDoNotDivideNameThoseThatDo) {
  EXPECT_THAT(message_of([] { ImageSteps(1, 28, 28, {.pool = 1, .patch = 3}, fashion_scaling(), "task 'fashion'"); }),
              ::testing::AllOf(HasSubstr("task 'fashion': patch = 3"), HasSubstr("1, 2, 4, 7, 14, 28")));
  EXPECT_THAT(message_of([] { ImageSteps(1, 28, 28, {.pool = 5, .patch = 1}, fashion_scaling(), "t"); }), HasSubstr("pool = 5"));
  EXPECT_THAT(message_of([] { ImageSteps(1, 28, 28, {.pool = 4, .patch = 2}, fashion_scaling(), "t"); }), HasSubstr("7 x 7"));
  EXPECT_NE(message_of([] { ImageSteps(1, 28, 28, {.pool = 0, .patch = 1}, fashion_scaling(), "t"); }), "");
}

}  // namespace
}  // namespace spt::formats
