#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "harness/base/file.h"
#include "harness/base/safetensors.h"
#include "harness/catalog.h"
#include "harness/cli/cli.h"

namespace spt::cli {
namespace {

using testing::HasSubstr;

/// A file with one tensor, and the fake worker to ask.
class CheckpointCli : public testing::Test {
 protected:
  CheckpointCli() : file_((std::filesystem::path(testing::TempDir()) / fmt::format("spt-cli-weights-{}", ::getpid())).string()) {
    write({});
  }
  ~CheckpointCli() override { std::filesystem::remove(file_); }

  void write(const std::map<std::string, std::string>& metadata) const {
    write_safetensors(
        file_, {{{"body.weight", {"F32", {2, 3}, std::string(24, '\0')}}, {"body.count", {"I64", {}, std::string(8, '\0')}}}, metadata});
  }
  int call(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    arguments.insert(arguments.begin(), {"checkpoint"});
    return run(arguments, out_, err_);
  }
  int convert(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {file_, "--output", "out", "--worker", std::string(SPT_BINARY_DIR) + "/spt-fake-asked-worker"});
    return call(std::move(arguments));
  }

  const std::string file_;
  std::ostringstream out_, err_;
};

TEST_F(CheckpointCli, ShowsNamesTypesAndShapes) {
  write({{"architecture", "s4d"}});
  ASSERT_EQ(call({"show", file_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("2 tensors, 7 values"));
  EXPECT_THAT(out_.str(), HasSubstr("architecture = s4d"));
  EXPECT_THAT(out_.str(), HasSubstr("body.weight  F32    2 x 3"));
  EXPECT_THAT(out_.str(), HasSubstr("body.count   I64    scalar"));
  write_file_atomically(file_, "PK\3\4 of another format");
  EXPECT_EQ(call({"show", file_}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("not a safetensors file"));
  EXPECT_EQ(call({"show", file_ + ".absent"}), 2);
  EXPECT_EQ(call({}), 2);
}

TEST_F(CheckpointCli, PrintsWhatAConversionTookAndLeft) {
  ASSERT_EQ(convert({"import", "--from", "theirs", "--architecture", "s4d", "--size", "100K", "--option", "n_layers=3", "--option",
                     "causal=true"}),
            0)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("copied   theirs -> ours\ndropped  left\nout: 1 copied, 1 dropped, SHA-256 hash\n"));
  EXPECT_EQ(convert({"export", "--to", "theirs", "--architecture", "s4d"}), 0) << err_.str();
}

TEST_F(CheckpointCli, ExportsByWhatTheFileSaysOfItself) {
  EXPECT_EQ(convert({"export", "--to", "theirs"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("give --architecture"));
  write({{kWeightsArchitecture, "s4d"}, {kWeightsOptions, "{\"d_model\":32}"}});
  EXPECT_EQ(convert({"export", "--to", "theirs"}), 0) << err_.str();
  EXPECT_EQ(convert({"export", "--to", "theirs", "--size", "100K"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("belong to --architecture"));
}

TEST_F(CheckpointCli, RefusesOptionsThatCannotBe) {
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"import", "--from", "theirs", "--architecture", "s4d"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(convert(arguments), 2);
    return err_.str();
  };
  EXPECT_THAT(refused({"--option", "n_layer=3"}), HasSubstr("did you mean 'n_layers'?"));
  EXPECT_THAT(refused({"--option", "n_layers"}), HasSubstr("must be NAME=VALUE"));
  EXPECT_THAT(refused({"--option", "n_layers=many"}), HasSubstr("--option n_layers=many"));
  EXPECT_THAT(refused({"--option", "n_layers=0"}), HasSubstr("out of range"));
  EXPECT_THAT(refused({"--option", "d_model=8", "--size", "100K"}), HasSubstr("give one of them"));
  EXPECT_EQ(convert({"import", "--from", "theirs", "--architecture", "s4e"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean 's4d'?"));
  EXPECT_EQ(convert({"import", "--from", "theirs"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--architecture"));
}

}  // namespace
}  // namespace spt::cli
