#include "tasks/formats/tsv.h"

#include <gmock/gmock.h>

#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::message_of;
using Row = std::vector<std::string>;

/// Rows of a text that comes in pieces of `piece` bytes; each begins with its line.
std::vector<Row> rows_of(const std::string& text, size_t piece = 1000, int64_t max_field = 1000) {
  std::vector<Row> rows;
  TsvReader reader("'file'", max_field, [&](int64_t line, std::span<const std::string> fields) {
    rows.push_back({std::to_string(line)});
    rows.back().insert(rows.back().end(), fields.begin(), fields.end());
  });
  for (size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
  reader.finish();
  return rows;
}

TEST(TsvReader, FieldsMayBeQuotedAndPiecesOfAnySize) {
  const std::string text = "0\ta b\tit's 5\" wide\r\n\n1\t\"tab\there\"\t\"two \"\"lines\"\"\r\nof text\"\n2\t\t\"\"\r3\tend\"\t\"q\"rest";
  const std::vector<Row> expected = {{"1", "0", "a b", "it's 5\" wide"},
                                     {"3", "1", "tab\there", "two \"lines\"\r\nof text"},
                                     {"5", "2", "", ""},
                                     {"6", "3", "end\"", "qrest"}};
  for (const size_t piece : {1, 2, 3, 7, 1000}) EXPECT_EQ(rows_of(text, piece), expected) << piece;
}

TEST(TsvReader, OddBeginningsAndEnds) {
  EXPECT_TRUE(rows_of("").empty());
  EXPECT_TRUE(rows_of("\n\r\n\r").empty());
  EXPECT_THAT(rows_of("\t"), ElementsAre(Row{"1", "", ""}));
  EXPECT_THAT(rows_of("a"), ElementsAre(Row{"1", "a"}));
  EXPECT_THAT(rows_of("\"\""), ElementsAre(Row{"1", ""}));
}

TEST(TsvReader, RefusesWhatNeverEnds) {
  EXPECT_THAT(message_of([] { rows_of("a\tb\nc\t\"d\ne"); }), AllOf(HasSubstr("'file', line 2"), HasSubstr("never closed")));
  EXPECT_THAT(message_of([] { rows_of("a\n" + std::string(2000, 'x')); }),
              AllOf(HasSubstr("'file', line 2"), HasSubstr("more than 1000 bytes")));
  EXPECT_THAT(message_of([] { rows_of("\"" + std::string(2000, '\n')); }), HasSubstr("the quote that begins it in line 1"));
  EXPECT_EQ(rows_of(std::string(1000, 'x')).size(), 1u);
}

}  // namespace
}  // namespace spt::formats
