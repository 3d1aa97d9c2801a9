#include "tasks/formats/manifest.h"

#include <gmock/gmock.h>

#include "harness/base/hash.h"
#include "tasks/formats/compressed.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

Manifest two_files() {
  Manifest manifest;
  manifest.task = "toy";
  manifest.folders = {"toy", "toy-elsewhere"};
  manifest.files = {{"b.bin", 3, sha256("bbb")}, {"a.bin", 3, sha256("aaa")}};
  return manifest;
}

TEST(Manifest, OfficialListsAreSortedAndWhole) {
  std::string before;
  for (const Manifest& m : manifests()) {
    EXPECT_LT(before, m.task);
    before = m.task;
    EXPECT_FALSE(m.folders.empty());
    EXPECT_FALSE(m.mirrors.empty());
    for (const OfficialFile& file : m.files) {
      EXPECT_EQ(file.sha256.size(), 64u) << file.name;
      EXPECT_GT(file.bytes, 0) << file.name;
      const auto gives = [&](const Download& d) { return std::count(d.gives.begin(), d.gives.end(), file.name) == 1; };
      EXPECT_EQ(std::count_if(m.downloads.begin(), m.downloads.end(), gives), 1) << file.name;
    }
  }
  EXPECT_EQ(manifest("image").files.size(), 6u);
  EXPECT_THAT(message_of([] { manifest("fashon"); }), HasSubstr("did you mean 'fashion'"));
}

TEST(Manifest, DataHashIsOverSortedLines) {
  const std::string expected = sha256("1111 a\n2222 b\n");
  EXPECT_EQ(data_hash({{"b", "2222"}, {"a", "1111"}}), expected);
  EXPECT_NE(data_hash({{"a", "1111"}}), expected);
  EXPECT_EQ(official_hash(two_files()), sha256(sha256("aaa") + " a.bin\n" + sha256("bbb") + " b.bin\n"));
}

TEST(Verify, CompleteSetHasTheOfficialHash) {
  const TemporaryFolder root;
  root.write("toy/a.bin", "aaa");
  root.write("toy/b.bin.gz", pack_gzip("bbb"));
  const Verification found = verify(two_files(), root.path);
  EXPECT_TRUE(found.official());
  EXPECT_EQ(found.data_hash(), official_hash(two_files()));
}

TEST(Verify, MissingDifferentAndDamagedFilesAreTold) {
  const TemporaryFolder root;
  EXPECT_FALSE(verify(two_files(), root.path).any());
  root.write("toy/b.bin", "bbB");
  Verification found = verify(two_files(), root.path);
  EXPECT_TRUE(found.any());
  EXPECT_FALSE(found.official());
  EXPECT_EQ(found.files[0].state, FileState::kDifferent);
  EXPECT_EQ(found.files[1].state, FileState::kMissing);
  EXPECT_EQ(found.data_hash(), data_hash({{"b.bin", sha256("bbB")}}));
  root.write("toy/a.bin.gz", "no gzip");
  found = verify(two_files(), root.path);
  EXPECT_EQ(found.files[1].state, FileState::kDifferent);
  EXPECT_THAT(found.files[1].problem, HasSubstr("a.bin.gz"));
}

TEST(Verify, FoldersAreNotMixed) {
  const TemporaryFolder root;
  root.write("toy-elsewhere/a.bin", "aaa");
  EXPECT_EQ(data_folder(two_files(), root.path), root.path / "toy-elsewhere");
  root.write("toy/b.bin", "bbb");
  EXPECT_EQ(data_folder(two_files(), root.path), root.path / "toy");
  EXPECT_EQ(verify(two_files(), root.path).files[1].state, FileState::kMissing);
}

TEST(VerifiedRecord, IsReadBackAsWritten) {
  const TemporaryFolder root;
  EXPECT_FALSE(read_verified_record(two_files(), root.path));
  root.write("toy/b.bin", "bbb");
  const Verification found = verify(two_files(), root.path);
  write_verified_record(two_files(), root.path, found);
  const auto record = read_verified_record(two_files(), root.path);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->data_hash, found.data_hash());
  EXPECT_FALSE(record->official);
  EXPECT_THAT(record->files, ::testing::ElementsAre(FileIdentity{"b.bin", sha256("bbb"), 3}));
}

TEST(LocalData, IsTheRecordElseWhatIsThereNow) {
  const TemporaryFolder root;
  EXPECT_THAT(message_of<DataError>([&] { local_data(two_files(), root.path); }), HasSubstr("data list toy"));
  root.write("toy/b.bin", "bbb");
  EXPECT_EQ(local_data(two_files(), root.path).data_hash, verify(two_files(), root.path).data_hash());
  root.write("toy/a.bin", "other");
  EXPECT_EQ(local_data(two_files(), root.path).files.size(), 2u);
  write_verified_record(two_files(), root.path, verify(two_files(), root.path));
  std::filesystem::remove(root.path / "toy/a.bin");
  EXPECT_EQ(local_data(two_files(), root.path).files.size(), 2u);  // the record counts until it is renewed
}

TEST(VerifiedRecord, DamageAtAnyByteIsADataErrorOrTheSameRecord) {
  const TemporaryFolder root;
  root.write("toy/b.bin", "bbb");
  write_verified_record(two_files(), root.path, verify(two_files(), root.path));
  const auto file = verified_record_file(two_files(), root.path);
  const std::string whole = read_file(file);
  const std::string hash = read_verified_record(two_files(), root.path)->data_hash;
  for (size_t n = 0; n + 2 < whole.size(); ++n) {
    root.write("toy/verified.json", whole.substr(0, n));
    EXPECT_THAT(message_of<DataError>([&] { read_verified_record(two_files(), root.path); }), HasSubstr("data verify toy")) << n;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    root.write("toy/verified.json", flipped);
    try {
      EXPECT_EQ(read_verified_record(two_files(), root.path)->data_hash, hash) << at;
    } catch (const DataError&) {
    }
  }
}

}  // namespace
}  // namespace spt::formats
