#include "tasks/formats/data_commands.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tasks/formats/cifar.h"
#include "tasks/formats/manifest.h"
#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

/// Everything that a command says.
template <class Command>
std::string said(Command&& command) {
  std::string text;
  command([&](const std::string& line) { text += line + "\n"; });
  return text;
}

std::string one_cifar_image() {
  return format_cifar({.n = 1, .channels = 3, .height = 32, .width = 32, .pixels = std::vector<uint8_t>(3072), .labels = {4}});
}

TEST(ListData, TellsForEachTaskWhatIsMissingAndHowToGetIt) {
  const TemporaryFolder root;
  const std::string text = said([&](const LineSink& say) { list_data(root.path, {}, say); });
  for (const std::string& task : data_tasks()) EXPECT_THAT(text, HasSubstr(task + ":"));
  EXPECT_THAT(text, AllOf(HasSubstr("missing data_batch_5.bin"), HasSubstr("spt-bench data fetch image"), HasSubstr("aclImdb_v1.tar.gz"),
                          HasSubstr("data make listops")));
  EXPECT_THAT(message_of([&] { list_data(root.path, {"imgae"}, [](const std::string&) {}); }), HasSubstr("did you mean 'image'"));
}

TEST(VerifyData, RecordsAPartialSetForPlanning) {
  const TemporaryFolder root;
  root.write("image/data_batch_2.bin", one_cifar_image());
  root.write("image/test_batch.bin", one_cifar_image());
  bool whole = true;
  const std::string text = said([&](const LineSink& say) { whole = verify_data(root.path, {"image"}, say); });
  EXPECT_FALSE(whole);
  EXPECT_THAT(text, AllOf(HasSubstr("partial"), HasSubstr("missing data_batch_1.bin"), HasSubstr("different data_batch_2.bin"),
                          HasSubstr("partial = true")));
  const auto record = read_verified_record(manifest("image"), root.path);
  ASSERT_TRUE(record);
  EXPECT_THAT(text, HasSubstr(record->data_hash));
  EXPECT_EQ(record->files.size(), 2u);
}

TEST(VerifyData, AReadOnlyRootIsLeftAlone) {
  const TemporaryFolder root;
  root.write("cifar10/test_batch.bin", one_cifar_image());
  using std::filesystem::perms;
  std::filesystem::permissions(root.path, perms::owner_read | perms::owner_exec);
  EXPECT_THAT(said([&](const LineSink& say) { verify_data(root.path, {"image"}, say); }), HasSubstr("not recorded"));
  std::filesystem::permissions(root.path, perms::owner_all);
  EXPECT_FALSE(std::filesystem::exists(root.path / "image"));
}

TEST(VerifyData, AbsentDataAreNotWhole) {
  const TemporaryFolder root;
  for (const std::string task : {"bidmc-hr", "bidmc-rr", "bidmc-spo2", "image", "listops", "retrieval", "scifar", "speech", "text"}) {
    bool whole = true;
    EXPECT_THAT(said([&](const LineSink& say) { whole = verify_data(root.path, {task}, say); }), HasSubstr("data list " + task));
    EXPECT_FALSE(whole);
  }
}

TEST(VerifyData, DamagedReviewsAreAVerdict) {
  const TemporaryFolder root;
  root.write("imdb/aclImdb_v1.tar.gz", "no archive");
  bool whole = true;
  EXPECT_THAT(said([&](const LineSink& say) { whole = verify_data(root.path, {"text"}, say); }), HasSubstr("damaged"));
  EXPECT_FALSE(whole);
}

TEST(MakeData, WritesListopsOfWhichVerifyTellsHowTheyDiffer) {
  const TemporaryFolder root;
  const ListopsOptions options{.max_length = 40, .min_length = 5, .max_depth = 4, .max_arguments = 4, .seed = 3};
  make_data(root.path, "listops", options, {.train = 30, .validation = 5, .test = 5}, [](const std::string&) {});
  bool whole = true;
  const std::string text = said([&](const LineSink& say) { whole = verify_data(root.path, {"listops"}, say); });
  EXPECT_FALSE(whole) << "fewer than published";
  EXPECT_THAT(text, HasSubstr("train: 30 expressions, every label is the value of its expression; Long Range Arena has 96000"));
  root.write("listops/basic_val.tsv", "Source\tTarget\n( ( [MAX 1 ) 2 ] )\t7\n");
  EXPECT_FALSE(verify_data(root.path, {"listops"}, [](const std::string&) {}));
  EXPECT_THAT(message_of([&] { make_data(root.path, "image", options, {}, [](const std::string&) {}); }), HasSubstr("listops"));
}

TEST(FetchData, TakesFilesOnlyOfTasksThatHaveAny) {
  const TemporaryFolder root;
  const LineSink quiet = [](const std::string&) {};
  EXPECT_THAT(message_of([&] { fetch_data(root.path, {}, "", quiet); }), HasSubstr("which data"));
  EXPECT_THAT(message_of([&] { fetch_data(root.path, {"listops"}, "", quiet); }), HasSubstr("data make listops"));
  EXPECT_THAT(message_of([&] { fetch_data(root.path, {"text"}, "", quiet); }), HasSubstr("aclImdb_v1.tar.gz"));
  EXPECT_THAT(message_of<DataError>([&] { fetch_data(root.path, {"image"}, (root.path / "nothing-here").string(), quiet); }),
              HasSubstr("nothing-here"));
}

}  // namespace
}  // namespace spt::formats
