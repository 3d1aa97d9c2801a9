#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "harness/cli/cli.h"

namespace spt::cli {
namespace {

using ::testing::HasSubstr;

struct DataAnswer {
  int code;
  std::string out, err;
};

DataAnswer data(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "data");
  std::ostringstream out, err;
  const int code = run(arguments, out, err);
  return {code, out.str(), err.str()};
}

const std::string kEmptyRoot = (std::filesystem::path(::testing::TempDir()) / "spt-cli-data-absent").string();

TEST(CliData, ListNamesEveryTaskWithoutData) {
  const DataAnswer answer = data({"list", "--data", kEmptyRoot});
  EXPECT_EQ(answer.code, 0) << answer.err;
  for (const char* task : {"fashion:", "image:", "listops:", "text:"}) EXPECT_THAT(answer.out, HasSubstr(task));
}

TEST(CliData, VerifyOfAbsentDataExitsWith1) { EXPECT_EQ(data({"verify", "image", "--data", kEmptyRoot}).code, 1); }

TEST(CliData, WrongUseExitsWith2AndSaysWhy) {
  EXPECT_EQ(data({}).code, 2);
  EXPECT_THAT(data({"list", "fashoin", "--data", kEmptyRoot}).err, HasSubstr("did you mean 'fashion'?"));
  EXPECT_THAT(data({"make", "image", "--data", kEmptyRoot}).err, HasSubstr("listops"));
  EXPECT_EQ(data({"make", "listops", "--max-length", "0", "--data", kEmptyRoot}).code, 2);
  const DataAnswer fetch = data({"fetch", "image", "--from", kEmptyRoot, "--data", kEmptyRoot});
  EXPECT_EQ(fetch.code, 2);
  EXPECT_THAT(fetch.err, HasSubstr("cifar-10-binary.tar.gz"));
  std::filesystem::remove_all(kEmptyRoot);
}

TEST(CliData, MakeThenVerifyListops) {
  const std::string root = kEmptyRoot + "-make";
  const DataAnswer made = data(
      {"make", "listops", "--data", root, "--max-length", "30", "--min-length", "3", "--train", "20", "--validation", "5", "--test", "5"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(data({"verify", "listops", "--data", root}).code, 1) << "fewer expressions than published";
  std::filesystem::remove_all(root);
}

TEST(CliData, MakeListAndVerifyPathfinder) {
  const std::string root = kEmptyRoot + "-pathfinder";
  EXPECT_THAT(data({"list", "pathfinder32", "--data", root}).out, HasSubstr("missing"));
  const DataAnswer made = data({"make", "pathfinder32", "--data", root, "--count", "12", "--threads", "2", "--seed", "4"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(data({"list", "pathfinder32", "--data", root}).out, HasSubstr("made by spt-bench"));
  const DataAnswer verified = data({"verify", "pathfinder32", "--data", root});
  EXPECT_EQ(verified.code, 1);  // not 200,000
  EXPECT_THAT(verified.out, HasSubstr("12 images of 32 x 32"));
  EXPECT_EQ(data({"make", "pathfinder32", "--data", root, "--count", "12", "--seed", "5"}).code, 2);
  EXPECT_THAT(data({"make", "pathx", "--data", root, "--max-depth", "5"}).err, HasSubstr("--max-depth is no option of pathx"));
  EXPECT_THAT(data({"make", "listops", "--data", root, "--count", "5"}).err, HasSubstr("--count is no option of listops"));
  EXPECT_THAT(data({"fetch", "pathx", "--data", root}).err, HasSubstr("data make pathx"));
  std::filesystem::remove_all(root);
}

TEST(CliData, ShowWritesASheet) {
  const std::string out = kEmptyRoot + "-sheet.png";
  const DataAnswer shown = data({"show", "pathfinder32", "-n", "4", "--out", out, "--data", kEmptyRoot});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_EQ(data({"show", "pathy", "--data", kEmptyRoot}).code, 2);
  std::filesystem::remove(out);
}

}  // namespace
}  // namespace spt::cli
