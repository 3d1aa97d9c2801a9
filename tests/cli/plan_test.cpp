#include "harness/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/base/json.h"
#include "harness/cli/cli.h"
#include "harness/matrix.h"
#include "results/store.h"
#include "tests/golden/approved.h"
#include "tests/harness/fake_catalog.h"

namespace spt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kMatrix = R"(name = "tiny"
seeds = [1, 2]
protocols = ["scratch", "spt-masked"]
[budget]
finetune = { steps = 100 }
pretrain = { steps = 300 }
match = ["steps", "flops"]
evaluations = 10
[[architecture]]
name = "transformer"
[[architecture]]
name = "s4d"
size = "100K"
[[task]]
name = "fashion"
)";

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / (std::string("plan-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "tiny.toml") << kMatrix;
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Answer {
    int code;
    std::string out, err;
  };
  Answer call(std::vector<std::string> arguments) const {
    const std::string worker = (fs::path(SPT_BINARY_DIR) / "spt-fake-asked-worker").string();
    arguments.insert(arguments.end(), {"--worker", worker});
    std::ostringstream out, err;
    const int code = run(arguments, out, err);
    return {code, out.str(), err.str()};
  }
  Answer plan(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"plan",    "--matrix", (folder_ / "tiny.toml").string(), "--db", (folder_ / "t.db").string(),
                                          "--slots", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call(arguments);
  }
  fs::path folder_;
};

TEST_F(PlanCommand, ShowsJobsStagesAndTime) {
  const Answer answer = plan();
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(golden::is_approved("plan", answer.out));
  EXPECT_FALSE(fs::exists(folder_ / "t.db")) << "plan writes nothing";
}

TEST_F(PlanCommand, LeavesOutWhatIsDone) {
  {
    testing_catalog::FakeWorker worker;
    const Plan all = plan_matrix(parse_matrix(kMatrix, "tiny.toml"), worker, "data");
    results::Store store(folder_ / "t.db", results::Store::Mode::kReadWrite);
    std::vector<results::PlannedStage> stages;
    for (size_t i = 0; i < all.stages.size(); ++i) stages.push_back(planned_stage(all, i));
    store.record_plan(matrix_row(all), planned_jobs(all), stages);
    const std::string key = all.stages[0].key;
    const int64_t attempt = store.begin_attempt(key);
    store.fail_attempt(key, attempt, results::Failure::kDiverged, "loss is NaN", "");
  }
  const Answer answer = plan();
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("18: 0 done, 17 to run, 1 failed, 0 blocked"));
  std::ostringstream failures, err;
  EXPECT_EQ(run({"status", "--db", (folder_ / "t.db").string(), "--failures"}, failures, err), 1) << err.str();
  EXPECT_THAT(failures.str(), HasSubstr("\n  diverged: loss is NaN\n    fashion/"));
}

TEST_F(PlanCommand, ShowsWhereEachValueComesFrom) {
  const Answer json = plan({"--json"});
  EXPECT_EQ(parse_json(json.out, "out")["cells"][1]["peak_memory"], 32'000'000);
  const std::string key = parse_json(json.out, "out")["cells"][1]["keys"][0];
  const Answer answer = plan({"--show", key.substr(0, 12)});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("job     fashion/transformer/spt-masked@P+F/seed=1"));
  EXPECT_THAT(answer.out, HasSubstr("key     " + key));
  EXPECT_THAT(answer.out, HasSubstr("stage.pretrain.steps"));
  EXPECT_THAT(answer.out, HasSubstr("tiny.toml:6:"));
  const Answer named = plan({"--show", "fashion/s4d/scratch@F/seed=2"});
  EXPECT_THAT(named.out, HasSubstr("recipe of s4d: page 1"));
  const Answer wrong = plan({"--show", "fashion/s4d/scratch@F/seed=3"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean"));
}

TEST_F(PlanCommand, AWrongMatrixIsAnErrorWithItsPlace) {
  std::ofstream(folder_ / "tiny.toml", std::ios::app) << "[[tsk]]\n";
  const Answer answer = plan();
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("tiny.toml:16:"));
  EXPECT_THAT(answer.err, HasSubstr("did you mean 'task'"));
  EXPECT_EQ(answer.out, "");
}

TEST_F(PlanCommand, ListShowsTheGroupsOfAnArchitecture) {
  EXPECT_TRUE(golden::is_approved(
      "list_groups_fake",
      call({"list", "architectures", "s4d", "--groups", "--size", "100K", "--profile", "paper", "--task", "listops"}).out));
  EXPECT_THAT(call({"list", "architectures", "s4d", "--groups", "--task", "listops"}).out, HasSubstr("0.002")) << "the recipe of listops";
  EXPECT_THAT(call({"list", "architectures", "s4d", "--groups"}).out, HasSubstr("0.004")) << "fashion, which needs no data to be described";
  const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
    arguments.push_back("--groups");
    const Answer answer = call(arguments);
    EXPECT_EQ(answer.code, 2) << why;
    EXPECT_THAT(answer.err, HasSubstr(why));
  };
  refused({"list", "architectures"}, "belongs to one architecture");
  refused({"list", "tasks", "fashion"}, "belongs to one architecture");
  refused({"list", "architectures", "s4e"}, "did you mean 's4d'?");
  refused({"list", "architectures", "s4d", "--size", "2M"}, "--size: unknown size of s4d '2M'");
  refused({"list", "architectures", "s4d", "--profile", "papr"}, "did you mean 'paper'?");
  refused({"list", "architectures", "linear", "--task", "fashion"}, "linear on task fashion: needs tokens");
}

TEST_F(PlanCommand, ListShowsWhatIsRegistered) {
  EXPECT_TRUE(golden::is_approved("list_fake", call({"list", "architectures"}).out + call({"list", "architectures", "s4d"}).out +
                                                   call({"list", "protocols", "spt-masked"}).out));
  EXPECT_THAT(call({"list"}).out, HasSubstr("quick"));
  const Answer wrong = call({"list", "architectures", "s4e"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 's4d'?"));
  EXPECT_EQ(call({"list", "architecture"}).code, 2);
  EXPECT_THAT(call({"list", "matrices", "quick", "--show"}).out, HasSubstr("[[architecture]]"));
  EXPECT_THAT(call({"list", "matrices", "quick"}).out, Not(HasSubstr("[[architecture]]")));
}

}  // namespace
}  // namespace spt::cli
