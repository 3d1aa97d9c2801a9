#include "harness/worker_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/json.h"

namespace spt {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class WorkerClientTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / (std::string("client-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "data");
    ::setenv("SPT_FAKE_CALLS", (folder_ / "calls").c_str(), 1);
    ::setenv("SPT_FAKE_MODE", "", 1);
    ::unsetenv("SPT_FAKE_ANSWER");
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  std::unique_ptr<WorkerClient> client(const fs::path& cache) const {
    return make_worker_client({program(), cache, std::chrono::seconds(20)});
  }
  static fs::path program() { return fs::path(SPT_BINARY_DIR) / "spt-fake-asked-worker"; }
  std::string calls() const { return fs::exists(folder_ / "calls") ? read_file(folder_ / "calls") : ""; }
  DescribeQuery query() const { return {(folder_ / "data").string(), {{"listops", {{"n", int64_t{1}}}}}, {}}; }
  void answer_with_length(int64_t length) const {
    DescribeAnswer answer;
    answer.tasks.resize(1);
    answer.tasks[0].max_length = length;
    ::setenv("SPT_FAKE_ANSWER", canonical(to_json(answer)).c_str(), 1);
  }
  template <class Action>
  std::string error_of(Action action) const {
    try {
      action();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  fs::path folder_;
};

TEST_F(WorkerClientTest, AsksForTheCatalogOnceAndAgainWhenTheCopyIsTorn) {
  EXPECT_EQ(client(folder_ / "cache")->catalog().libtorch, "2.13.0");
  EXPECT_EQ(client(folder_ / "cache")->catalog().libtorch, "2.13.0");
  EXPECT_EQ(calls(), "catalog\n");
  const fs::path copy = folder_ / "cache" / elf_build_id(program()) / "catalog.json";
  std::ofstream(copy) << "{\"architectures\":[";
  EXPECT_EQ(client(folder_ / "cache")->catalog().libtorch, "2.13.0");
  std::ofstream(copy) << "{\"architectures\":[]}";
  EXPECT_EQ(client(folder_ / "cache")->catalog().libtorch, "2.13.0");
  EXPECT_EQ(calls(), "catalog\ncatalog\ncatalog\n");
}

TEST_F(WorkerClientTest, WorksWithoutACacheAndWithOneThatCannotBeMade) {
  client("")->catalog();
  std::ofstream(folder_ / "file") << "x";
  client(folder_ / "file")->catalog();
  EXPECT_EQ(calls(), "catalog\ncatalog\n");
}

TEST_F(WorkerClientTest, AsksAgainWhenTheDataChange) {
  answer_with_length(7);
  EXPECT_EQ(client(folder_ / "cache")->describe(query()).tasks[0].max_length, 7);
  answer_with_length(8);
  EXPECT_EQ(client(folder_ / "cache")->describe(query()).tasks[0].max_length, 7) << "from the cache";
  std::ofstream(folder_ / "data" / "new") << "x";
  EXPECT_EQ(client(folder_ / "cache")->describe(query()).tasks[0].max_length, 8);
}

TEST_F(WorkerClientTest, KeepsNoAnswerThatIsAnError) {
  DescribeAnswer answer;
  answer.tasks.resize(1);
  answer.tasks[0].error = "no data";
  ::setenv("SPT_FAKE_ANSWER", canonical(to_json(answer)).c_str(), 1);
  EXPECT_EQ(client(folder_ / "cache")->describe(query()).tasks[0].error, "no data");
  answer_with_length(8);
  EXPECT_EQ(client(folder_ / "cache")->describe(query()).tasks[0].error, "");
}

TEST_F(WorkerClientTest, AFailureShowsWhatTheWorkerSaid) {
  ::setenv("SPT_FAKE_MODE", "fail", 1);
  EXPECT_THAT(error_of([&] { client("")->catalog(); }), HasSubstr("catalog' exited with 3: first\nno such kernel"));
  ::setenv("SPT_FAKE_MODE", "text", 1);
  EXPECT_THAT(error_of([&] { client("")->catalog(); }), HasSubstr("is no spt-bench-worker: its answer to catalog is 'not json'"));
}

TEST_F(WorkerClientTest, GivesUpOnAWorkerThatHangs) {
  ::setenv("SPT_FAKE_MODE", "hang", 1);
  const auto hanging = make_worker_client({program(), "", std::chrono::seconds(1)});
  EXPECT_THAT(error_of([&] { hanging->catalog(); }), HasSubstr("no answer in 1 s"));
}

TEST_F(WorkerClientTest, ALargeQueryArrivesWhole) {
  DescribeQuery large = query();
  large.tasks[0].options["text"] = std::string(5'000'000, 'x');
  EXPECT_EQ(client("")->describe(large).tasks.at(0).train_size, 1000);
}

TEST_F(WorkerClientTest, AnswersMustBeWhole) {
  ::setenv("SPT_FAKE_ANSWER", "{\"tasks\":[],\"models\":[]}", 1);
  EXPECT_THAT(error_of([&] { client("")->describe(query()); }), HasSubstr("0 tasks"));
  ::setenv("SPT_FAKE_ANSWER", "[]", 1);
  EXPECT_THAT(error_of([&] { client("")->probe({"data", "cpu", 1, 3, {JobSpec{}}}); }), HasSubstr("not one answer"));
}

TEST(Worker, MissingProgramSaysWhatToDo) {
  try {
    worker_program("/nonexistent/worker");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("--worker"));
  }
}

TEST(ElfBuildId, ReadsTheNoteAndRefusesOtherFiles) {
  const fs::path fake = fs::path(SPT_BINARY_DIR) / "spt-fake-asked-worker";
  const std::string id = elf_build_id(fake);
  EXPECT_EQ(id.size(), 40u);
  EXPECT_NE(id, elf_build_id("/proc/self/exe"));
  const fs::path file = fs::path(testing::TempDir()) / "no-elf";
  std::ofstream(file) << "#!/bin/sh\n";
  EXPECT_THROW(elf_build_id(file), Error);
  const std::string whole = read_file(fake);
  for (const size_t size : {0, 3, 40, 64, 100, 700}) {
    std::ofstream(file, std::ios::binary).write(whole.data(), static_cast<std::streamsize>(size));
    EXPECT_THROW(elf_build_id(file), Error) << size;
  }
}

}  // namespace
}  // namespace spt
