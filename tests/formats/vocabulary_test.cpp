#include "tasks/formats/vocabulary.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

TEST(Vocabulary, PutsSpecialTokensFirstThenFallingCountThenCodePoint) {
  const std::map<std::string, int64_t> counts = {{"b", 3}, {"a", 3}, {"\xc3\xa9", 9}, {"z", 3}, {"\xe4\xb8\xad", 9}, {"rare", 1}};
  const Vocabulary vocabulary = Vocabulary::from_counts(counts, 2);
  const std::vector<std::string> expected = {"<mask>", "<pad>", "<unk>", "<eos>", "\xc3\xa9", "\xe4\xb8\xad", "a", "b", "z"};
  EXPECT_EQ(vocabulary.tokens(), expected);
  EXPECT_EQ(vocabulary.size(), 9);
  EXPECT_EQ(vocabulary.id("a"), 6);
  EXPECT_EQ(vocabulary.id("rare"), kUnknownId);
  EXPECT_EQ(vocabulary.id("<eos>"), kEosId);
  EXPECT_EQ(vocabulary.id("<mask>"), kMaskId);
}

TEST(Vocabulary, MinCountIsInclusive) {
  EXPECT_EQ(Vocabulary::from_counts({{"a", 15}, {"b", 14}}, 15).size(), kSpecialTokens + 1);
  EXPECT_EQ(Vocabulary::from_counts({}, 1).size(), kSpecialTokens);
}

TEST(Vocabulary, EncodesTheFirstTokensAndEndOfSequence) {
  const Vocabulary vocabulary({"a", "b"});
  const std::vector<std::string> tokens = {"b", "?", "a", "a"};
  EXPECT_EQ(vocabulary.encode(tokens, 10), (std::vector<int64_t>{5, kUnknownId, 4, 4, kEosId}));
  EXPECT_EQ(vocabulary.encode(tokens, 5), (std::vector<int64_t>{5, kUnknownId, 4, 4, kEosId}));
  EXPECT_EQ(vocabulary.encode(tokens, 3), (std::vector<int64_t>{5, kUnknownId, kEosId}));
  EXPECT_EQ(vocabulary.encode(tokens, 1), (std::vector<int64_t>{kEosId}));
  EXPECT_EQ(vocabulary.encode({}, 5), (std::vector<int64_t>{kEosId}));
}

TEST(Vocabulary, RefusesATokenThatStandsTwice) {
  EXPECT_THROW(Vocabulary({"a", "a"}), Error);
  EXPECT_THROW(Vocabulary({"<pad>"}), Error);
}

}  // namespace
}  // namespace spt::formats
