#include "tasks/formats/imdb.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

const Files kReviews = {
    {"aclImdb/README", "read me"},          {"aclImdb/train/unsup/0_0.txt", "no label"},      {"aclImdb/train/pos/10_9.txt", "tenth"},
    {"aclImdb/train/pos/9_7.txt", "ninth"}, {"aclImdb/train/neg/3_1.txt", "bad caf\xc3\xa9"}, {"aclImdb/test/pos/0_10.txt", "great<br />"},
    {"aclImdb/test/neg/0_2.txt", ""}};

fs::path fresh(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("imdb_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void unpack(const Files& files, const fs::path& folder) {
  for (const auto& [name, content] : files) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << content;
  }
}

void pack(const Files& files, const fs::path& file, const std::string& prefix = "") {
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  if (file.extension() == ".gz") archive_write_add_filter_gzip(writer);
  if (file.extension() == ".xz") archive_write_add_filter_xz(writer);
  fs::create_directories(file.parent_path());
  ASSERT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK);
  for (const auto& [name, content] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, (prefix + name).c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  ASSERT_EQ(archive_write_close(writer), ARCHIVE_OK);
  archive_write_free(writer);
}

template <class Function>
std::string data_error_of(Function function) {
  try {
    function();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

void expect_same(const ImdbData& a, const ImdbData& b) {
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.test, b.test);
  EXPECT_EQ(a.data_hash, b.data_hash);
}

TEST(Imdb, ReadsAFolderInOrderOfClassAndNumber) {
  const fs::path root = fresh("folder");
  unpack(kReviews, root);
  const ImdbData data = read_imdb_folder(root / "aclImdb");
  ASSERT_EQ(data.train.size(), 3u);
  EXPECT_EQ(data.train[0], (Review{0, 3, 1, "bad caf\xc3\xa9"}));
  EXPECT_EQ(data.train[1], (Review{1, 9, 7, "ninth"}));
  EXPECT_EQ(data.train[2], (Review{1, 10, 9, "tenth"}));
  ASSERT_EQ(data.test.size(), 2u);
  EXPECT_EQ(data.test[0], (Review{0, 0, 2, ""}));
  EXPECT_EQ(review_name("train", data.train[2]), "train/pos/10_9.txt");
}

TEST(Imdb, DataHashIsOverNamesAndContents) {
  const fs::path root = fresh("hash");
  unpack(kReviews, root);
  std::string lines;
  for (const auto& [name, content] : kReviews) {  // the map is in order of the names
    if (name.ends_with(".txt") && !name.starts_with("aclImdb/train/unsup")) lines += sha256(content) + " " + name.substr(8) + "\n";
  }
  EXPECT_EQ(read_imdb_folder(root / "aclImdb").data_hash, sha256(lines));
}

TEST(Imdb, ArchivesGiveWhatTheFolderGives) {
  const fs::path root = fresh("archives");
  unpack(kReviews, root);
  const ImdbData folder = read_imdb_folder(root / "aclImdb");
  for (const char* name : {"a.tar", "a.tar.gz", "a.tar.xz"}) {
    pack(kReviews, root / name);
    expect_same(read_imdb_archive(root / name), folder);
  }
  pack(kReviews, root / "dotted.tar", "./");
  expect_same(read_imdb_archive(root / "dotted.tar"), folder);
}

TEST(Imdb, OtherContentIsAnotherHash) {
  const fs::path root = fresh("other");
  unpack(kReviews, root / "a");
  Files changed = kReviews;
  changed["aclImdb/test/pos/0_10.txt"] = "great";
  unpack(changed, root / "b");
  EXPECT_NE(read_imdb_folder(root / "a/aclImdb").data_hash, read_imdb_folder(root / "b/aclImdb").data_hash);
}

TEST(Imdb, RefusesWrongLayouts) {
  struct Change {
    std::string remove, add, message;
  };
  const std::vector<Change> changes = {{"aclImdb/test/neg/0_2.txt", "", "test/neg"},
                                       {"", "aclImdb/train/pos/review.txt", "'train/pos/review.txt' is not named like a review"},
                                       {"", "aclImdb/train/pos/7_8.txt.bak", "is not named like a review"},
                                       {"", "aclImdb/train/pos/7_.txt", "is not named like a review"},
                                       {"", "aclImdb/train/pos/-7_8.txt", "is not named like a review"},
                                       {"", "aclImdb/train/pos/7_3.txt", "the rating in 'train/pos/7_3.txt' does not fit its folder"},
                                       {"", "aclImdb/train/neg/7_0.txt", "does not fit its folder"},
                                       {"", "aclImdb/train/pos/9_8.txt", "stands twice"}};
  for (const Change& change : changes) {
    const fs::path root = fresh("layout");
    Files files = kReviews;
    if (!change.remove.empty()) files.erase(change.remove);
    if (!change.add.empty()) files[change.add] = "x";
    unpack(files, root);
    pack(files, root / "a.tar.gz");
    EXPECT_THAT(data_error_of([&] { read_imdb_folder(root / "aclImdb"); }), HasSubstr(change.message));
    EXPECT_THAT(data_error_of([&] { read_imdb_archive(root / "a.tar.gz"); }), HasSubstr(change.message));
  }
}

TEST(Imdb, RefusesArchivesThatAreDamagedOrOfSomethingElse) {
  const fs::path root = fresh("damaged");
  pack(kReviews, root / "whole.tar.xz");
  const std::string bytes = read_file(root / "whole.tar.xz");
  write_file_atomically(root / "short.tar.xz", bytes.substr(0, bytes.size() / 2));
  write_file_atomically(root / "noise.tar.xz", "this is no archive");
  write_file_atomically(root / "empty.tar.xz", "");
  pack({{"cifar/data.bin", "x"}}, root / "cifar.tar");
  for (const char* name : {"short.tar.xz", "noise.tar.xz", "empty.tar.xz", "cifar.tar", "absent.tar"}) {
    EXPECT_THAT(data_error_of([&] { read_imdb_archive(root / name); }), HasSubstr(name)) << name;
  }
}

TEST(Imdb, MissingDataSayWhatToDo) {
  const fs::path root = fresh("missing");
  EXPECT_FALSE(find_imdb(root));
  const std::string error = data_error_of([&] { load_imdb(root); });
  EXPECT_THAT(error, HasSubstr(root.string() + "/imdb/aclImdb"));
  EXPECT_THAT(error, HasSubstr("aclImdb_v1.tar.gz"));
  fs::create_directories(root / "aclImdb");
  EXPECT_THAT(data_error_of([&] { load_imdb(root); }), HasSubstr("is no whole aclImdb folder"));
}

TEST(ImdbCache, GivesTheSameAsTheArchive) {
  const fs::path root = fresh("cache");
  const fs::path archive = root / "imdb" / "aclImdb_v1.tar.gz";
  pack(kReviews, archive);
  const ImdbData first = load_imdb(root);
  const fs::path cache = imdb_cache_file(root, sha256_file(archive));
  ASSERT_TRUE(fs::exists(cache));
  const auto written = fs::last_write_time(cache);
  expect_same(load_imdb(root), first);
  EXPECT_EQ(fs::last_write_time(cache), written) << "read, not made again";
  expect_same(first, read_imdb_archive(archive));
}

TEST(ImdbCache, IsMadeAgainWhenDamaged) {
  const fs::path root = fresh("rebuilt");
  const fs::path archive = root / "aclImdb.tar";
  pack(kReviews, archive);
  const ImdbData data = load_imdb(root);
  const fs::path cache = imdb_cache_file(root, sha256_file(archive));
  const std::string whole = read_file(cache);
  std::string flipped = whole;
  flipped[flipped.rfind("ninth")] ^= 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() - 5), flipped, std::string(), std::string("{}")}) {
    write_file_atomically(cache, damaged);
    expect_same(load_imdb(root), data);
    EXPECT_EQ(read_file(cache), whole);
  }
}

TEST(ImdbCache, FollowsTheArchive) {
  const fs::path root = fresh("follows");
  pack(kReviews, root / "aclImdb.tar");
  const ImdbData before = load_imdb(root);
  Files changed = kReviews;
  changed["aclImdb/test/pos/0_10.txt"] = "good";
  pack(changed, root / "aclImdb.tar");
  EXPECT_NE(load_imdb(root).data_hash, before.data_hash);
}

TEST(ImdbCache, IsNotNeeded) {
  const fs::path root = fresh("unwritable");
  pack(kReviews, root / "aclImdb.tar");
  std::ofstream(root / "cache") << "a file where the folder would be";
  EXPECT_EQ(load_imdb(root).train.size(), 3u);
}

TEST(DataImdb, OfficialSetIsWhole) {
  const char* place = std::getenv("SPT_DATA");
  if (place == nullptr) GTEST_SKIP() << "SPT_DATA does not say where the data are";
  const auto found = find_imdb(place);
  if (!found) GTEST_SKIP() << "there are no reviews below " << place;
  // Below a root of its own, because the cache is written.
  const fs::path root = fresh("official");
  fs::create_symlink(fs::absolute(*found), root / found->filename());
  const ImdbData data = load_imdb(root);
  ASSERT_EQ(data.train.size(), 25000u);
  ASSERT_EQ(data.test.size(), 25000u);
  size_t bytes = 0;
  for (const auto* split : {&data.train, &data.test}) {
    for (size_t i = 0; i < split->size(); ++i) {
      bytes += (*split)[i].text.size();
      ASSERT_EQ((*split)[i].id, static_cast<int64_t>(i % 12500));
    }
  }
  EXPECT_EQ(bytes, 65483508u);
  EXPECT_EQ(data.data_hash, kImdbOfficialHash);
  expect_same(load_imdb(root), data);
  fs::remove_all(root);
}

}  // namespace
}  // namespace spt::formats
