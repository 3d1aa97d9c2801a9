#include "tasks/formats/aan.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/base/hash.h"
#include "tests/formats/aan_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::aan_line;
using testing_files::message_of;
using testing_files::TemporaryFolder;

TEST(Aan, TextsAreKeptOnceAndPairsCountThem) {
  const TemporaryFolder root;
  write_aan(root);
  const AanData data = read_aan_tsv(*find_aan_tsv(root.path));
  EXPECT_THAT(data.texts, ElementsAre("A Tree Model", "Knowledge \"Free\" Induction", "caf\xc3\xa9", "zz", "only in test"));
  EXPECT_THAT(data.pairs[0],
              ElementsAre(AanPair{1, 0, 1}, AanPair{0, 1, 2}, AanPair{1, 2, 0}, AanPair{0, 3, 3}, AanPair{1, 0, 2}, AanPair{0, 0, 3}));
  EXPECT_EQ(data.pairs[1].size(), 3u);
  EXPECT_THAT(data.pairs[2], ElementsAre(AanPair{0, 4, 0}, AanPair{1, 0, 1}));
  const auto file = [&](const char* split) { return root.path / "aan" / fmt::format("new_aan_pairs.{}.tsv", split); };
  EXPECT_EQ(data.data_hash, sha256(fmt::format("{} new_aan_pairs.eval.tsv\n{} new_aan_pairs.test.tsv\n{} new_aan_pairs.train.tsv\n",
                                               sha256_file(file("eval")), sha256_file(file("test")), sha256_file(file("train")))));
}

TEST(Aan, RefusesDamageWithFileAndLine) {
  struct Damage {
    std::string content, message;
  };
  const std::string fine = aan_line("1.0", "a", "b");
  for (const Damage& damage : {Damage{fine + "1.0\tid\tid\ttext\n", "line 2: 4 columns instead of 5"},
                               {fine + aan_line("2.0", "a", "b"), "line 2: label '2.0'"},
                               {fine + aan_line("-1", "a", "b"), "line 2: label '-1'"},
                               {fine + aan_line("label", "a", "b"), "label 'label'"},
                               {fine + fine + aan_line("1", "a\xff", "b"), "line 3, first text: byte 1 (0xff) is not UTF-8"},
                               {aan_line("1", "a", "\xe2\x82"), "line 1, second text: byte 0 (0xe2) is not UTF-8"},
                               {"", "no pairs"},
                               {fine + "1.0\tid\tid\ta\t\"cut of", "line 2: the quote that begins a field is never closed"}}) {
    const TemporaryFolder root;
    write_aan(root);
    root.write("aan/new_aan_pairs.eval.tsv", damage.content);
    EXPECT_THAT(message_of<DataError>([&] { read_aan_tsv(root.path / "aan"); }),
                AllOf(HasSubstr("new_aan_pairs.eval.tsv"), HasSubstr(damage.message)));
  }
  const TemporaryFolder root;
  write_aan(root);
  std::filesystem::remove(root.path / "aan/new_aan_pairs.test.tsv");
  EXPECT_THAT(message_of<DataError>([&] { read_aan_tsv(root.path / "aan"); }), HasSubstr("new_aan_pairs.test.tsv"));
}

TEST(Aan, AbsurdlyLongFieldsAreRefused) {
  const TemporaryFolder root;
  write_aan(root);
  root.write("aan/new_aan_pairs.eval.tsv", aan_line("1.0", std::string((64 << 20) + 1, 'x'), "b"));
  EXPECT_THAT(message_of<DataError>([&] { read_aan_tsv(root.path / "aan"); }),
              AllOf(HasSubstr("line 1"), HasSubstr("more than 67108864 bytes")));
}

TEST(Scisummnet, PapersAreFoundByTheirIds) {
  const TemporaryFolder root;
  write_scisummnet(root);
  const AanData data = read_scisummnet(*find_scisummnet(root.path));
  EXPECT_THAT(data.texts, ElementsAre("C92-3150 text\n", "P02-1017 text\n", "P07-1049 text\n", "W95-0107 text\n"));
  EXPECT_THAT(data.pairs[1], ElementsAre(AanPair{1, 2, 0}, AanPair{0, 3, 1}));
}

TEST(Scisummnet, RefusesUnknownPapersAndMissingPairs) {
  const TemporaryFolder root;
  write_scisummnet(root);
  root.write("aan/aan_scisummnet/pairs.eval.tsv", "1\tP07-1049\tP99-9999\n");
  EXPECT_THAT(message_of<DataError>([&] { read_scisummnet(*find_scisummnet(root.path)); }),
              AllOf(HasSubstr("pairs.eval.tsv, line 1"), HasSubstr("no paper 'P99-9999'")));
  std::filesystem::remove(root.path / "aan/aan_scisummnet/pairs.eval.tsv");
  EXPECT_THAT(message_of<DataError>([&] { read_scisummnet(*find_scisummnet(root.path)); }), HasSubstr("pairs.eval.tsv: missing"));
  root.write("aan/other.tar", "no archive");
  EXPECT_THAT(message_of<DataError>([&] { read_scisummnet(root.path / "aan/other.tar"); }), HasSubstr("other.tar"));
}

TEST(DataScisummnet, TheStandInIsTheKnownOne) {
  const char* root = std::getenv("SPT_DATA");
  const auto place = root == nullptr ? std::nullopt : find_scisummnet(root);
  if (!place) GTEST_SKIP() << "no aan/aan_scisummnet.tar.xz below SPT_DATA";
  const AanData data = read_scisummnet(*place);
  EXPECT_EQ(data.texts.size(), 978u);
  EXPECT_EQ(data.pairs[0].size(), 1832u);
  EXPECT_EQ(data.pairs[1].size(), 228u);
  EXPECT_EQ(data.pairs[2].size(), 228u);
  EXPECT_EQ(data.data_hash, kScisummnetHash);
}

}  // namespace
}  // namespace spt::formats
