#include "harness/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/estimate.h"
#include "tests/harness/fake_catalog.h"

namespace spt {
namespace {

using testing::ElementsAre;
using testing_catalog::FakeWorker;

class WorkTest : public testing::Test {
 protected:
  // Stages of the one seed: scratch 0, pretraining 1, fine-tuning 2, matched 3, majority 4.
  WorkTest() {
    plan_ = plan_matrix(parse_matrix("name='m'\nseeds=[1]\nprotocols=['scratch','spt-masked']\n[budget]\nfinetune={steps=100}\npretrain={"
                                     "steps=300}\nevaluations=10\n"
                                     "[[architecture]]\nname='transformer'\n[[task]]\nname='fashion'\n",
                                     "m.toml"),
                        worker_, "data");
  }
  void set(size_t stage, const std::string& status, int64_t oom = 0) {
    states_[plan_.stages[stage].key] = {.status = status, .message = "", .log_tail = "", .oom_attempts = oom};
  }
  std::vector<size_t> run(const WorkOptions& options = {}) const { return work_left(plan_, states_, options).run; }

  FakeWorker worker_;
  Plan plan_;
  std::unordered_map<std::string, results::StageState> states_;
};

TEST_F(WorkTest, NothingKnownIsAllToRunParentsFirst) {
  EXPECT_THAT(run(), ElementsAre(0, 1, 2, 3, 4));
  const Work work = work_left(plan_, states_);
  EXPECT_EQ(work.jobs, 4);
  EXPECT_EQ(work.jobs_run, 4);
}

TEST_F(WorkTest, AJobThatStandsUnderTwoLabelsIsCountedOnce) {
  const std::string again = "[[architecture]]\nname='transformer'\nlabel='again'\n";
  const Plan twice = plan_matrix(parse_matrix("name='m'\nseeds=[1]\nprotocols=['scratch']\n[budget]\nfinetune={steps=100}\nevaluations=10\n"
                                              "[[architecture]]\nname='transformer'\n" +
                                                  again + "[[task]]\nname='fashion'\n",
                                              "m.toml"),
                                 worker_, "data");
  EXPECT_EQ(twice.job_count(), 3u) << "two labels and the baseline";
  EXPECT_EQ(work_left(twice, {}).jobs, 2);
}

TEST_F(WorkTest, DoneStaysDone) {
  for (size_t i = 0; i < 5; ++i) set(i, "done");
  EXPECT_THAT(run(), ElementsAre());
  EXPECT_EQ(work_left(plan_, states_).jobs_done, 4);
}

TEST_F(WorkTest, InterruptedStagesAreRepeatedAndOomOnce) {
  for (const char* status : {"planned", "running", "killed", "crashed", "timeout", "hung"}) {
    set(0, status);
    EXPECT_EQ(run().front(), 0u) << status;
  }
  set(0, "oom", 1);
  EXPECT_EQ(run().front(), 0u);
  set(0, "oom", 2);
  EXPECT_EQ(run().front(), 1u);
  EXPECT_EQ(run({.retry = {"oom"}, .has_checkpoint = {}}).front(), 0u);
}

TEST_F(WorkTest, DivergedAndDataStayUntilTheyAreNamed) {
  for (const std::string status : {"diverged", "data"}) {
    set(3, status);
    EXPECT_THAT(run(), ElementsAre(0, 1, 2, 4)) << status;
    EXPECT_EQ(work_left(plan_, states_).jobs_failed, 1);
    EXPECT_THAT(run({.retry = {status}, .has_checkpoint = {}}), ElementsAre(0, 1, 2, 3, 4)) << status;
  }
  EXPECT_THROW(run({.retry = {"divergd"}, .has_checkpoint = {}}), Error);
}

TEST_F(WorkTest, ABlockedStageFollowsItsParent) {
  set(1, "diverged");
  set(2, "blocked");
  EXPECT_THAT(run(), ElementsAre(0, 3, 4));
  EXPECT_EQ(work_left(plan_, states_).stages[2], StageWork::kBlocked);
  EXPECT_EQ(work_left(plan_, states_).jobs_blocked, 1);
  EXPECT_THAT(run({.retry = {"diverged"}, .has_checkpoint = {}}), ElementsAre(0, 1, 2, 3, 4));
  set(1, "killed");
  EXPECT_THAT(run(), ElementsAre(0, 1, 2, 3, 4));
  set(1, "done");
  EXPECT_THAT(run(), ElementsAre(0, 2, 3, 4));
}

TEST_F(WorkTest, PretrainingThatNobodyNeedsIsNotRun) {
  set(2, "done");
  EXPECT_THAT(run(), ElementsAre(0, 3, 4));
  set(2, "diverged");
  EXPECT_THAT(run(), ElementsAre(0, 3, 4));
}

TEST_F(WorkTest, AMissingCheckpointIsTrainedAgainOnlyWhereItIsNeeded) {
  set(1, "done");
  const WorkOptions gone{.retry = {}, .has_checkpoint = [](const std::string&) { return false; }};
  EXPECT_THAT(run(gone), ElementsAre(0, 1, 2, 3, 4));
  set(2, "done");
  EXPECT_THAT(run(gone), ElementsAre(0, 3, 4));
}

TEST_F(WorkTest, TimeComesFromAProbeWhereNothingWasMeasured) {
  const Estimate estimate = estimate_time(plan_, work_left(plan_, states_), {}, worker_, {.data_root = "data"});
  ASSERT_EQ(worker_.probes.size(), 1u);
  EXPECT_EQ(worker_.probes[0].jobs.size(), 2u) << "the spt job covers both models of the transformer; majority is another";
  EXPECT_EQ(estimate.probed, 5u);
  // 100 steps of 0.01 s; 10 evaluations of 200 examples of 0.001 s; start, data, reload (100 examples) and test (200)
  EXPECT_NEAR(estimate.stage_s[0], 100 * 0.01 + 10 * 0.2 + 3 + 0.3, 1e-9);
  EXPECT_NEAR(estimate.stage_s[1], 300 * 0.01 + 10 * 0.2 + 3 + 0.1, 1e-9);
  EXPECT_NEAR(estimate.slots_s(2), estimate.total_s / 2, 1e-9);
}

TEST_F(WorkTest, TimeComesFromMeasuredStagesOfTheSameStamp) {
  set(0, "done");
  results::AttemptTimes times{.stage_key = plan_.stages[0].key, .stamp = {}, .steps = 100, .train_s = 5, .evaluate_s = 1, .wall_s = 8};
  times.stamp.build_id = "build", times.stamp.device_kind = "cpu", times.stamp.threads = 1;
  const Estimate estimate = estimate_time(plan_, work_left(plan_, states_), {times}, worker_, {.data_root = "data"});
  EXPECT_EQ(estimate.stage_s[0], 0) << "done";
  EXPECT_NEAR(estimate.stage_s[3], 400 * 0.05 + 10 * 0.1 + 2, 1e-9) << "the same model, more steps";
  EXPECT_EQ(estimate.measured, 2u);
  EXPECT_EQ(estimate.probed, 2u);
  times.stamp.build_id = "another";
  EXPECT_EQ(estimate_time(plan_, work_left(plan_, states_), {times}, worker_, {.data_root = "data"}).measured, 0u);
}

}  // namespace
}  // namespace spt
