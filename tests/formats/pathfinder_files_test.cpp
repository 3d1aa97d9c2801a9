#include "tasks/formats/pathfinder_files.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tasks/formats/pathfinder.h"
#include "tasks/formats/png.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const PathfinderSet& smallest_set() { return *find_pathfinder_set("pathfinder32"); }

void make_small(const TemporaryFolder& root, PathfinderMake make) {
  make_pathfinder_files(smallest_set(), make, root.path, [](const std::string&) {});
}

std::string metadata_message(const std::string& text, const std::string& name = "0.npy") {
  return message_of<DataError>([&] { pathfinder_samples({{name, text}}, kPathfinderLevel, "meta"); });
}

/// Content of every file below a folder.
std::map<std::string, std::string> all_files(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[std::filesystem::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

TEST(PathfinderFiles, TheSampleInTheRepositoryIsRead) {
  const PathfinderIndex index = read_pathfinder_index(std::filesystem::path(SPT_TEST_DATA) / "pathfinder_sample", 32);
  ASSERT_EQ(index.samples.size(), 6u);
  EXPECT_EQ(index.samples[0].file, "curv_contour_length_14/imgs/0/sample_0.png");
  EXPECT_EQ(index.samples[5].file, "curv_contour_length_14/imgs/1/sample_2.png");
  const PathfinderGenerator generator(pathfinder_options(32), 0);
  for (int64_t i = 0; i < 6; ++i) {
    const PathfinderImage image = generator.image(static_cast<uint64_t>(i));
    EXPECT_EQ(read_pathfinder_image(index, i), image.pixels) << i;
    EXPECT_EQ(index.samples[i].label, image.label) << i;
  }
}

TEST(PathfinderFiles, WhatIsMadeIsWhatTheGeneratorDrawsWithAnyNumberOfThreads) {
  const TemporaryFolder root;
  make_small(root, {.count = 7, .seed = 3, .threads = 1, .batch = 3});
  const auto one = all_files(root.path);
  EXPECT_EQ(one.size(), 7u + 3u + 1u);
  EXPECT_TRUE(one.contains("pathfinder/pathfinder32/curv_contour_length_14/imgs/2/sample_0.png"));
  EXPECT_TRUE(one.contains("pathfinder/pathfinder32/curv_contour_length_14/metadata/2.npy"));
  std::filesystem::remove_all(root.path / "pathfinder");
  make_small(root, {.count = 7, .seed = 3, .threads = 3, .batch = 3});
  EXPECT_EQ(all_files(root.path), one);
  const auto folder = find_pathfinder(smallest_set(), root.path);
  ASSERT_TRUE(folder);
  const PathfinderIndex index = read_pathfinder_index(*folder, 32);
  const PathfinderGenerator generator(pathfinder_options(32), 3);
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(read_pathfinder_image(index, i), generator.image(static_cast<uint64_t>(i)).pixels);
}

TEST(PathfinderFiles, AStoppedMakeGoesOnAndASetGrows) {
  const TemporaryFolder root;
  make_small(root, {.count = 8, .batch = 3});
  const auto whole = all_files(root.path);
  const std::filesystem::path level = root.path / "pathfinder/pathfinder32" / kPathfinderLevel;
  std::filesystem::remove(level / "metadata/1.npy");  // stopped between the images and the metadata of batch 1
  root.write("pathfinder/pathfinder32/curv_contour_length_14/imgs/1.partial/sample_0.png", "half a fil");
  const auto untouched = std::filesystem::last_write_time(level / "imgs/0/sample_0.png");
  make_small(root, {.count = 8, .batch = 3});
  EXPECT_EQ(all_files(root.path), whole);
  EXPECT_EQ(std::filesystem::last_write_time(level / "imgs/0/sample_0.png"), untouched);
  std::filesystem::remove_all(root.path / "pathfinder");
  make_small(root, {.count = 4, .batch = 3});
  make_small(root, {.count = 8, .batch = 3});
  EXPECT_EQ(all_files(root.path), whole);
}

TEST(PathfinderFiles, AnotherSeedOrForeignFilesAreLeftAlone) {
  const TemporaryFolder root;
  make_small(root, {.count = 2, .seed = 1});
  const auto before = all_files(root.path);
  EXPECT_THAT(message_of([&] { make_small(root, {.count = 2, .seed = 2}); }), HasSubstr("another generator or seed"));
  EXPECT_EQ(all_files(root.path), before);
  std::filesystem::remove(root.path / "pathfinder/pathfinder32/generated.txt");
  EXPECT_THAT(message_of([&] { make_small(root, {.count = 2, .seed = 1}); }), HasSubstr("was not made by this command"));
  EXPECT_THAT(message_of([&] { make_small(root, {.count = 0}); }), HasSubstr("count is 0"));
  EXPECT_THAT(message_of([&] { make_small(root, {.count = 1, .seed = -1}); }), HasSubstr("seed is -1"));
}

TEST(PathfinderFiles, FilesComeInTheOrderOfTheirNumbers) {
  const auto samples = pathfinder_samples({{"10.npy", "imgs/10 b.png 0 1\n"}, {"2.npy", "imgs/2 a.png 0 0 0.5"}}, "level", "meta");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].file, "level/imgs/2/a.png");
  EXPECT_EQ(samples[1].label, 1);
}

TEST(PathfinderFiles, DamagedMetadataAreErrorsWithFileAndLine) {
  EXPECT_THAT(metadata_message("imgs/0 a.png 0 1\nimgs/0 b.png 1 2\n"), AllOf(HasSubstr("0.npy, line 2"), HasSubstr("label is '2'")));
  EXPECT_THAT(metadata_message("imgs/0 a.png 0 99999999999999999999"), HasSubstr("allowed: 0, 1"));
  EXPECT_THAT(metadata_message("imgs/0 a.png 0\n"), AllOf(HasSubstr("line 1"), HasSubstr("3 fields")));
  EXPECT_THAT(metadata_message("imgs/0 a.png 0 1\n\n"), AllOf(HasSubstr("line 2"), HasSubstr("0 fields")));
  EXPECT_THAT(metadata_message("../.. passwd 0 1\n"), HasSubstr("leads out of the data folder"));
  EXPECT_THAT(metadata_message("/etc passwd 0 1\n"), HasSubstr("leads out of the data folder"));
  EXPECT_THAT(metadata_message("\x93NUMPY\x01"), HasSubstr("numpy's binary format"));
  EXPECT_THAT(metadata_message("", "one.npy"), HasSubstr("'one.npy' is no number"));
  EXPECT_THAT(message_of<DataError>([] { pathfinder_samples({{"1.npy", ""}, {"01.npy", ""}}, "level", "meta"); }), HasSubstr("one number"));
}

TEST(PathfinderFiles, MissingEmptyAndWrongImagesAreNamed) {
  const TemporaryFolder root;
  make_small(root, {.count = 3});
  const std::filesystem::path folder = *find_pathfinder(smallest_set(), root.path);
  const std::string first = "pathfinder/pathfinder32/curv_contour_length_14/imgs/0/sample_0.png";
  root.write(first, "");
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_index(folder, 32); }), AllOf(HasSubstr("sample_0.png"), HasSubstr("empty")));
  std::filesystem::remove(root.path / first);
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_index(folder, 32); }),
              AllOf(HasSubstr("sample_0.png"), HasSubstr("cannot be read")));
  root.write(first, encode_png({.height = 16, .width = 32, .channels = 1, .pixels = std::vector<uint8_t>(512)}));
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_image(read_pathfinder_index(folder, 32), 0); }),
              HasSubstr("16 x 32 pixels, expected 32 x 32"));
  root.write(first, "\x89PNG");
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_image(read_pathfinder_index(folder, 32), 0); }),
              AllOf(HasSubstr("sample_0.png"), HasSubstr("at byte")));
  std::filesystem::remove_all(folder / kPathfinderLevel / "metadata");
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_index(folder, 32); }), HasSubstr("metadata"));
  std::filesystem::create_directories(folder / kPathfinderLevel / "metadata");
  EXPECT_THAT(message_of<DataError>([&] { read_pathfinder_index(folder, 32); }), HasSubstr("no metadata"));
}

}  // namespace
}  // namespace spt::formats
