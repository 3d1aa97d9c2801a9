#include "tasks/formats/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/json.h"
#include "harness/base/safetensors.h"
#include "tasks/formats/vocabulary.h"

namespace spt::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kTokenizerCases = std::filesystem::path(SPT_TEST_DATA) / ".." / "reference" / "cases";

std::vector<std::vector<int64_t>> rows_of(const RawTensor& tensor) {
  std::vector<std::vector<int64_t>> rows(tensor.shape[0], std::vector<int64_t>(tensor.shape[1]));
  for (size_t i = 0; i < rows.size(); ++i) std::memcpy(rows[i].data(), tensor.bytes.data() + i * rows[i].size() * 8, rows[i].size() * 8);
  return rows;
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> tokens;
  for (const char32_t point : code_points(text, "case")) tokens.push_back(to_utf8(point));
  return tokens;
}

/// Vocabulary, ids (padded with `<pad>`) and lengths of a published tokenizer case.
void expect_case(const std::string& name, const std::vector<std::vector<std::string>>& train,
                 const std::vector<std::vector<std::string>>& texts, int64_t min_count) {
  const auto json = parse_json(read_file(kTokenizerCases / name / "case.json"), name);
  const int64_t max_length = json.at("options").at("l_max");
  std::map<std::string, int64_t> counts;
  for (const auto& tokens : train) {
    for (size_t i = 0; i < std::min(tokens.size(), static_cast<size_t>(max_length - 1)); ++i) ++counts[tokens[i]];
  }
  const Vocabulary vocabulary = Vocabulary::from_counts(counts, min_count);
  EXPECT_EQ(vocabulary.tokens(), json.at("vocabulary").get<std::vector<std::string>>());
  const auto rows = rows_of(read_safetensors(kTokenizerCases / name / "case.safetensors").tensors.at("output.ids"));
  ASSERT_EQ(rows.size(), texts.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<int64_t> ids = vocabulary.encode(texts[i], max_length);
    ids.resize(rows[i].size(), kPadId);
    EXPECT_EQ(ids, rows[i]) << "row " << i;
  }
}

TEST(ListopsTokens, EqualPublishedCase) {
  const auto json = parse_json(read_file(kTokenizerCases / "tokenizer_listops" / "case.json"), "tokenizer_listops");
  std::vector<std::vector<std::string>> lines;
  for (const std::string line : json.at("lines")) lines.push_back(listops_tokens(line.substr(line.find('\t') + 1)));
  expect_case("tokenizer_listops", lines, lines, 1);
}

TEST(CodePoints, EqualPublishedCase) {
  const auto json = parse_json(read_file(kTokenizerCases / "tokenizer_text" / "case.json"), "tokenizer_text");
  std::vector<std::vector<std::string>> train, texts;
  for (const std::string text : json.at("train_texts")) train.push_back(characters(text));
  for (const std::string text : json.at("texts")) texts.push_back(characters(text));
  expect_case("tokenizer_text", train, texts, json.at("options").at("min_freq"));
}

TEST(ListopsTokens, ClosingBracketsStayAndParenthesesGo) {
  EXPECT_THAT(listops_tokens("( ( [MAX 1 ) ] )"), ElementsAre("[MAX", "1", "X"));
  EXPECT_THAT(listops_tokens("  [MAX\t1\n2 ]\r\n"), ElementsAre("[MAX", "1", "2", "X"));
  EXPECT_THAT(listops_tokens("(1)"), ElementsAre("1"));
  EXPECT_TRUE(listops_tokens(" ( ) ").empty());
  EXPECT_TRUE(listops_tokens("").empty());
}

TEST(CodePoints, AreTheInverseOfUtf8AtTheEdges) {
  for (const char32_t point : {U'\0', U'\x7f', U'\x80', U'\x7ff', U'\x800', U'\xd7ff', U'\xe000', U'\xffff', U'\x10000', U'\x10ffff'}) {
    EXPECT_EQ(code_points(to_utf8(point), "test"), std::u32string(1, point)) << static_cast<uint32_t>(point);
  }
  EXPECT_EQ(code_points("a\xc3\xa9\xe2\x80\x94\xf0\x9f\x98\x80", "test"), U"a\u00e9\u2014\U0001f600");
}

TEST(CodePoints, RefuseWhatIsNotUtf8AndSayWhere) {
  const std::vector<std::string> bad = {"\x80",         "\xc3",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x80\x80",
                                        "\xed\xa0\x80", "\xe2\x80",     "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                        "\xff",         "\xe2\x28\xa1", "\xc3\x28"};
  for (const std::string& bytes : bad) EXPECT_THROW(code_points("ab" + bytes + "c", "review"), Error) << bytes;
  try {
    code_points("ab\xc3(", "review 7");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "review 7: byte 2 (0xc3) is not UTF-8");
  }
}

}  // namespace
}  // namespace spt::formats
