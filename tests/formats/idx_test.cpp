#include "tasks/formats/idx.h"

#include <gmock/gmock.h>

#include "tasks/formats/compressed.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const IdxArray kSmall = {.shape = {2, 2, 3}, .values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}};

TEST(Idx, WritesAndReadsTheSameArray) {
  EXPECT_EQ(parse_idx(format_idx(kSmall), 3, "x"), kSmall);
  const IdxArray empty = {.shape = {0}, .values = {}};
  EXPECT_EQ(parse_idx(format_idx(empty), 1, "x"), empty);
}

TEST(Idx, HeaderIsBigEndianAsPublished) {
  const std::string bytes = format_idx({.shape = {258}, .values = std::vector<uint8_t>(258, 7)});
  EXPECT_EQ(bytes.substr(0, 8), std::string("\0\0\x08\x01\0\0\x01\x02", 8));
}

TEST(Idx, EveryTruncationIsADataErrorNamingThePlace) {
  const std::string whole = format_idx(kSmall);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THAT(message_of<DataError>([&] { parse_idx(whole.substr(0, n), 3, "'small'"); }), HasSubstr("'small'")) << n;
}

TEST(Idx, TrailingBytesAreRefused) {
  EXPECT_THAT(message_of<DataError>([] { parse_idx(format_idx(kSmall) + "x", 3, "here"); }), HasSubstr("trailing"));
}

TEST(Idx, WrongTypeAndDimensionsAreNamed) {
  std::string floats = format_idx(kSmall);
  floats[2] = 0x0d;
  EXPECT_THAT(message_of<DataError>([&] { parse_idx(floats, 3, "here"); }), HasSubstr("0x0d"));
  EXPECT_THAT(message_of<DataError>([] { parse_idx(format_idx(kSmall), 1, "here"); }), HasSubstr("3 dimensions, expected 1"));
}

TEST(Idx, SizesWhoseProductOverflowsAreRefused) {
  std::string huge("\0\0\x08\x03", 4);
  huge += std::string(12, '\xff');
  EXPECT_THROW(parse_idx(huge, 3, "huge"), DataError);
  huge.replace(4, 12, std::string("\x80\0\0\0\x80\0\0\0\0\0\0\4", 12));  // 2^31 * 2^31 * 4 = 2^64: 0 if it wrapped
  EXPECT_THROW(parse_idx(huge, 3, "huge"), DataError);
}

TEST(Idx, AnyFlippedBitIsAnErrorOrAnArrayOfTheSameSize) {
  const std::string whole = format_idx(kSmall);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      EXPECT_EQ(parse_idx(flipped, 3, "x").values.size(), kSmall.values.size());
      EXPECT_GE(bit / 8, 16u) << "a flipped header bit was not noticed";
    } catch (const DataError&) {
      EXPECT_LT(bit / 8, 16u);
    }
  }
}

TEST(Idx, ReadsPlainAndPackedFiles) {
  const TemporaryFolder folder;
  folder.write("a", format_idx(kSmall));
  folder.write("b.gz", pack_gzip(format_idx(kSmall)));
  EXPECT_EQ(read_idx(folder.path / "a", 3), kSmall);
  EXPECT_EQ(read_idx(folder.path / "b.gz", 3), kSmall);
  EXPECT_THAT(message_of<DataError>([&] { read_idx(folder.path / "absent", 3); }), HasSubstr("absent"));
}

TEST(Compressed, DamagedGzipIsADataErrorAtEveryByte) {
  const std::string content = "a few bytes that are packed, packed and packed again";
  const std::string packed = pack_gzip(content);
  ASSERT_EQ(unpack_gzip(packed, 1000, "x"), content);
  for (size_t n = 0; n < packed.size(); ++n) EXPECT_THROW(unpack_gzip(packed.substr(0, n), 1000, "x"), DataError) << n;
  for (size_t at = 10; at < packed.size(); ++at) {  // the 10 bytes before hold time and flags that change no content
    std::string flipped = packed;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_THROW(unpack_gzip(flipped, 1000, "x"), DataError) << at;
  }
  EXPECT_THROW(unpack_gzip(packed + "tail", 1000, "x"), DataError);
}

TEST(Compressed, MembersFollowOneAnother) { EXPECT_EQ(unpack_gzip(pack_gzip("one ") + pack_gzip("two"), 100, "x"), "one two"); }

TEST(Compressed, ContentBeyondTheLimitIsRefused) {
  EXPECT_THAT(message_of<DataError>([] { unpack_gzip(pack_gzip(std::string(100'000, 'a')), 1000, "bomb"); }), HasSubstr("1000"));
  const TemporaryFolder folder;
  folder.write("plain", std::string(1001, 'a'));
  EXPECT_THROW(read_unpacked(folder.path / "plain", 1000), DataError);
}

TEST(Compressed, XzIsReadAndItsDamageNoticed) {
  // printf 'hello xz\n' | xz -9
  const std::string packed(
      "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x1c\x00\x00\x00\x10\xcf\x58\xcc"
      "\x01\x00\x08\x68\x65\x6c\x6c\x6f\x20\x78\x7a\x0a\x00\x00\x00\x00\xc1\x49\x3a\xfa\x63\x52\x14\x5a"
      "\x00\x01\x21\x09\x6c\x18\xc5\xd5\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a",
      68);
  const TemporaryFolder folder;
  folder.write("a.xz", packed);
  EXPECT_EQ(read_unpacked(folder.path / "a.xz", 100), "hello xz\n");
  EXPECT_THROW(read_unpacked(folder.path / "a.xz", 5), DataError);
  folder.write("cut.xz", packed.substr(0, 40));
  EXPECT_THROW(read_unpacked(folder.path / "cut.xz", 100), DataError);
  folder.write("not.xz", "plain text");
  EXPECT_THROW(read_unpacked(folder.path / "not.xz", 100), DataError);
  folder.write("none.xz", "");
  EXPECT_THROW(read_unpacked(folder.path / "none.xz", 100), DataError);
}

TEST(Compressed, PlainFileIsPreferredToAPackedOne) {
  const TemporaryFolder folder;
  EXPECT_FALSE(find_packed(folder.path, "f"));
  folder.write("f.gz", pack_gzip("x"));
  EXPECT_EQ(find_packed(folder.path, "f"), folder.path / "f.gz");
  folder.write("f", "x");
  EXPECT_EQ(find_packed(folder.path, "f"), folder.path / "f");
}

}  // namespace
}  // namespace spt::formats
