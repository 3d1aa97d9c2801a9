// What a user does to a run beside letting it finish.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "harness/base/file.h"
#include "results/store.h"
#include "tests/e2e/program.h"

namespace spt::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Tiny {
  std::string label = "transformer";
  double lr = 0.002;
  int steps = 12;
  std::string task = "listops";
  std::string task_options =
      "min_length = 4, max_length = 16, max_depth = 3, train_examples = 200, validation_examples = 50, test_examples = 50";
};

std::filesystem::path write_matrix(const std::filesystem::path& folder, const Tiny& tiny) {
  const std::filesystem::path file = folder / "tiny.toml";
  write_file_atomically(file, fmt::format(R"(name = "tiny"
seeds = [1, 2]
protocols = ["scratch", "spt-masked"]
[budget]
finetune = {{ steps = {1} }}
pretrain = {{ steps = {1} }}
evaluations = 3
[train]
batch = 8
lr = {2}
[[architecture]]
name = "transformer"
label = "{0}"
options = {{ n_layers = 1, d_model = 8, n_heads = 2, d_ff = 16 }}
[[task]]
name = "{3}"
options = {{ {4} }}
)",
                                          tiny.label, tiny.steps, tiny.lr, tiny.task, tiny.task_options));
  return file;
}

class Run : public testing::Test {
 protected:
  std::vector<std::string> arguments(const std::filesystem::path& matrix, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> list = {
        "run",     "--matrix", matrix.string(), "--db", (folder / "t.db").string(), "--data", (folder / "data").string(),
        "--slots", "2",        "--no-probe"};
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  int run(const Tiny& tiny, const std::vector<std::string>& more = {}) {
    std::filesystem::remove(out());
    return run_program(arguments(write_matrix(folder, tiny), more), out(), 120);
  }
  std::filesystem::path out() const { return folder / "out.txt"; }
  std::string output() const { return read_file(out()); }
  int64_t attempts() const {
    const results::Store store(folder / "t.db", results::Store::Mode::kReadOnly);
    int64_t sum = 0;
    for (const auto& [key, state] : store.stage_states()) sum += state.attempts;
    return sum;
  }
  const std::filesystem::path folder = fresh_folder("run");
};

TEST_F(Run, ChangedLabelTrainsNothingAgainAndChangedLearningRateDoes) {
  ASSERT_EQ(run({}), 0) << output();
  const int64_t first = attempts();
  EXPECT_GT(first, 0);
  ASSERT_EQ(run({.label = "another name"}), 0) << output();
  EXPECT_EQ(attempts(), first);
  EXPECT_THAT(output(), HasSubstr("another name"));
  ASSERT_EQ(run({.lr = 0.001}), 0) << output();
  EXPECT_GT(attempts(), first);
}

TEST_F(Run, TrainsASharedPretrainingOnce) {
  ASSERT_EQ(run({}), 0) << output();
  const results::Store store(folder / "t.db", results::Store::Mode::kReadOnly);
  for (const auto& [key, state] : store.stage_states()) EXPECT_EQ(state.attempts, 1) << key;
}

TEST_F(Run, StopsWithinFiveSecondsOfCtrlCAndGoesOnLater) {
  Program program(arguments(write_matrix(folder, {.steps = 4000})), out());
  while (!program.ended() && workers_of(program.pid()).size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const auto workers = workers_of(program.pid());
  const auto asked = std::chrono::steady_clock::now();
  program.kill(SIGINT);
  const int status = program.wait(30);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(5));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  for (const auto& [pid, dir] : workers) EXPECT_NE(::kill(pid, 0), 0) << "worker " << pid << " outlived the run";
}

TEST_F(Run, ASecondRunOnADatabaseInUseIsRefusedWithItsHolder) {
  Program program(arguments(write_matrix(folder, {.steps = 4000})), out());
  while (!program.ended() && workers_of(program.pid()).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::filesystem::path second = folder / "second.txt";
  EXPECT_EQ(run_program(arguments(folder / "tiny.toml"), second, 60), 2) << "the first run said:\n" << read_file(out());
  EXPECT_THAT(read_file(second), HasSubstr(std::to_string(program.pid())));
}

TEST_F(Run, MissingDataIsAFailureThatSaysWhatToRunAndTheSweepEnds) {
  EXPECT_EQ(run({.task = "text", .task_options = "max_length = 1024"}), 1);
  EXPECT_THAT(output(), HasSubstr("data: "));
  EXPECT_THAT(output(), HasSubstr("Put the unpacked folder at"));
}

TEST_F(Run, TruncatedDataFileIsAFailureOfClassData) {
  const std::filesystem::path packaged = "/usr/share/datasets/fashion-mnist", own = folder / "data" / "fashion";
  if (!std::filesystem::exists(packaged)) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  std::filesystem::create_directories(own);
  std::filesystem::copy(packaged, own);
  std::filesystem::resize_file(own / "train-images-idx3-ubyte.gz", 100000);
  EXPECT_EQ(run({.task = "fashion", .task_options = "patch = 14"}), 1);
  EXPECT_THAT(output(), HasSubstr("data: "));
  EXPECT_THAT(output(), HasSubstr("train-images-idx3-ubyte"));
}

TEST_F(Run, CorruptCheckpointAndJournalAreNotTrusted) {
  Program program(arguments(write_matrix(folder, {.steps = 3000}), {"--checkpoint-s", "0.2"}), out());
  std::vector<std::filesystem::path> checkpoints;
  while (!program.ended() && checkpoints.empty())
    for (const auto& [pid, dir] : workers_of(program.pid()))
      if (std::filesystem::exists(dir / "last.safetensors")) checkpoints.push_back(dir / "last.safetensors");
  program.kill(SIGKILL);
  program.wait(30);
  ASSERT_FALSE(checkpoints.empty());
  for (const auto& file : checkpoints) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    std::ofstream(file.parent_path() / "journal.jsonl", std::ios::app) << "{\"torn\": \n not a line\n{\"half\":";
  }
  // Finishes from the beginning: an earlier, shorter budget would be another job.
  std::filesystem::remove(out());
  EXPECT_EQ(run_program(arguments(folder / "tiny.toml"), out(), 300), 0) << output();
}

TEST_F(Run, AFullDiskIsAnErrorAndNothingIsLost) {
  const std::filesystem::path disk = fresh_folder("full-disk");
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=600k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  const std::vector<std::string> list = {"run", "--matrix",  write_matrix(folder, {}).string(), "--db", (disk / "t.db").string(), "--slots",
                                         "1",   "--no-probe"};
  const int code = run_program(list, out(), 120);
  EXPECT_TRUE(code == 1 || code == 2) << code << output();
  EXPECT_THAT(output(), testing::AnyOf(HasSubstr("full"), HasSubstr("No space left")));
  EXPECT_THAT(output(), Not(HasSubstr("terminate called")));
  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  std::filesystem::remove(out());
  EXPECT_EQ(run_program(list, out(), 120), 0) << output();
  ::umount(disk.c_str());
}

TEST_F(Run, AnUnknownMatrixOrFlagIsAUsageErrorWithSuggestions) {
  EXPECT_EQ(run_program({"run", "--matrix", "quik"}, out(), 20), 2);
  EXPECT_THAT(output(), HasSubstr("quick"));
  EXPECT_EQ(run_program({"runn"}, out(), 20), 2);
  EXPECT_THAT(output(), HasSubstr("run"));
}

}  // namespace
}  // namespace spt::e2e
