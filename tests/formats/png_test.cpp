#include "tasks/formats/png.h"

#include <gmock/gmock.h>

#include "tasks/formats/image.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

Picture gradient(int64_t height, int64_t width, int64_t channels) {
  Picture picture{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (int64_t i = 0; i < height * width * channels; ++i) picture.pixels.push_back(static_cast<uint8_t>(i * 37 + i / 256));
  return picture;
}

TEST(Png, GreyPicturesComeBackAsTheyWere) {
  const Picture picture = gradient(7, 300, 1), back = decode_grey_png(encode_png(picture), 300, "x");
  EXPECT_EQ(back.height, 7);
  EXPECT_EQ(back.width, 300);
  EXPECT_EQ(back.pixels, picture.pixels);
}

TEST(Png, ColoursBecomePillowsLuma) {
  const Picture picture = gradient(5, 9, 3), back = decode_grey_png(encode_png(picture), 9, "x");
  ASSERT_EQ(back.channels, 1);
  for (size_t i = 0; i < back.pixels.size(); ++i)
    EXPECT_EQ(back.pixels[i], luma(picture.pixels[3 * i], picture.pixels[3 * i + 1], picture.pixels[3 * i + 2]));
}

TEST(Png, EveryTruncationIsAnErrorWithAnOffset) {
  const std::string whole = encode_png(gradient(6, 6, 1));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string message = message_of<DataError>([&] { decode_grey_png(whole.substr(0, n), 256, "'a.png'"); });
    EXPECT_THAT(message, AllOf(HasSubstr("'a.png'"), HasSubstr(n == 0 ? "empty" : "at byte"))) << n;
  }
}

TEST(Png, NoChangedByteIsReadAsAnotherPicture) {
  const Picture picture = gradient(6, 6, 1);
  const std::string whole = encode_png(picture);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    try {
      EXPECT_EQ(decode_grey_png(changed, 256, "x").pixels, picture.pixels) << at;
    } catch (const DataError&) {  // what most changes must give
    }
  }
}

TEST(Png, SizesOverTheLimitAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_THAT(message_of<DataError>([] { decode_grey_png(encode_png(gradient(33, 2, 1)), 32, "x"); }), HasSubstr("at most 32 x 32"));
  EXPECT_THAT(message_of<DataError>([] { decode_grey_png("not a picture at all", 32, "x"); }), HasSubstr("Not a PNG file"));
}

TEST(Png, AMissingFileIsNamed) {
  EXPECT_THAT(message_of<DataError>([] { read_grey_png("no/such/file.png", 32); }), HasSubstr("no/such/file.png"));
}

}  // namespace
}  // namespace spt::formats
