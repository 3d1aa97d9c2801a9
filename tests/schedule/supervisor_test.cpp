#include "harness/schedule/supervisor.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/base/file.h"
#include "harness/schedule/progress.h"

namespace spt::schedule {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

struct Recorder : Observer {
  void started(const StageTask& task, const Slot& slot) override {
    ++active[slot.name()];
    most_at_once = std::max(most_at_once, ++running);
    order.push_back(task.key);
  }
  void ended(const StageTask& task, const std::string& status, const std::string& message, double) override {
    if (status != "blocked") --running;
    ends[task.key] = status + (message.empty() ? "" : ": " + message);
    if (on_end) on_end();
  }
  void progress(const ProgressView& view) override {
    if (on_progress) on_progress(view);
  }
  std::map<std::string, int> active;
  std::vector<std::string> order;
  std::map<std::string, std::string> ends;
  int running = 0, most_at_once = 0;
  std::function<void()> on_end;
  std::function<void(const ProgressView&)> on_progress;
};

/// A folder, a database and jobs whose task names say what the fake worker does.
class Sweep {
 public:
  Sweep() : folder_(std::filesystem::path(testing::TempDir()) / fmt::format("sweep-{}-{}", ::getpid(), ++count_)) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    store_ = std::make_unique<results::Store>(folder_ / "t.db", results::Store::Mode::kReadWrite);
    options.worker = std::filesystem::path(SPT_BINARY_DIR) / "spt-fake-worker";
    options.runs = folder_ / "t.db.runs";
    options.data_root = folder_;
    options.slots = make_slots({.slots = 2, .threads = 1}, 8, 0);
    options.poll = std::chrono::milliseconds(20);
    options.limits.stop_s = 1;
  }
  ~Sweep() { std::filesystem::remove_all(folder_); }

  /// Adds a stage; answers its key.
  std::string add(const std::string& behaviour, uint64_t seed = 1, const std::string& parent = "", bool pretraining = false) {
    JobSpec job;
    job.architecture.name = "fake";
    job.task.name = behaviour;
    job.data_hash = std::string(64, '0');
    job.seed = seed;
    if (!parent.empty()) job.stages.push_back(specs_.at(parent).stages.front());
    StageSpec stage;
    stage.name = pretraining ? "pretrain" : "finetune";
    stage.objective.name = pretraining ? "masked" : "supervised";
    stage.steps = 10 + static_cast<int64_t>(seed);
    stage.evaluations = 1;
    job.stages.push_back(stage);
    const std::string key = job_key(job);
    specs_[key] = job;
    tasks_.push_back({.key = key,
                      .label = fmt::format("{}/seed={}", behaviour, seed),
                      .parent = parent,
                      .pretraining = pretraining,
                      .stage = static_cast<int64_t>(job.stages.size()) - 1,
                      .cost = 1});
    return key;
  }

  /// The stage stays planned, but this run doesn't train it.
  void leave_to_another_run(const std::string& key) {
    const auto at = std::find_if(tasks_.begin(), tasks_.end(), [&](const StageTask& task) { return task.key == key; });
    elsewhere_.push_back(*at);
    tasks_.erase(at);
  }

  RunSummary run() {
    results::MatrixRow matrix;
    matrix.id = matrix.name = "fake";
    std::vector<results::PlannedStage> stages;
    std::vector<results::PlannedJob> jobs;
    std::vector<StageTask> planned = tasks_;
    planned.insert(planned.end(), elsewhere_.begin(), elsewhere_.end());
    for (const StageTask& task : planned) {
      stages.push_back(
          {.key = task.key, .name = task.pretraining ? "pretrain" : "finetune", .parent = task.parent, .spec = "{}", .index = task.stage});
      if (task.pretraining) continue;
      results::PlannedJob job;
      job.key = job.name = task.key;
      if (!task.parent.empty()) job.stages.push_back(task.parent);
      job.stages.push_back(task.key);
      jobs.push_back(job);
    }
    store_->record_plan(matrix, jobs, stages);
    Supervisor supervisor(*store_, options, tasks_, [this](const std::string& key) { return specs_.at(key); }, recorder);
    return supervisor.run();
  }

  std::string status(const std::string& key) { return store_->stage_states().at(key).status; }
  std::filesystem::path dir(const std::string& key) const { return options.runs / key; }
  std::string seen(const std::string& key) const { return read_file(dir(key) / "seen.txt"); }
  results::Store& store() { return *store_; }
  std::vector<StageTask>& tasks() { return tasks_; }

  RunOptions options;
  Recorder recorder;

 private:
  static inline int count_ = 0;
  std::filesystem::path folder_;
  std::unique_ptr<results::Store> store_;
  std::map<std::string, JobSpec> specs_;
  std::vector<StageTask> tasks_, elsewhere_;
};

bool alive(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string word, state;
  return static_cast<bool>(stat >> word >> word >> state) && state != "Z" && state != "X";
}

TEST(Supervisor, RunsEveryStageAndKeepsNoCheckpointByDefault) {
  Sweep sweep;
  const std::string a = sweep.add("ok", 1), b = sweep.add("ok", 2), c = sweep.add("ok", 3);
  const RunSummary summary = sweep.run();
  EXPECT_EQ(summary.done, 3);
  EXPECT_EQ(summary.failed + summary.blocked + summary.left, 0);
  for (const std::string& key : {a, b, c}) {
    EXPECT_EQ(sweep.status(key), "done");
    EXPECT_FALSE(std::filesystem::exists(sweep.dir(key) / "last.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(sweep.dir(key) / "best.safetensors"));
  }
}

TEST(Supervisor, NeverRunsMoreThanItsSlots) {
  Sweep sweep;
  for (uint64_t seed = 1; seed <= 5; ++seed) sweep.add("brief", seed);
  EXPECT_EQ(sweep.run().done, 5);
  EXPECT_EQ(sweep.recorder.most_at_once, 2);
}

TEST(Supervisor, RunsASharedPretrainingOnceBeforeItsChildrenAndDropsItsCheckpointAfterTheLast) {
  Sweep sweep;
  const std::string pretraining = sweep.add("brief", 1, "", true);
  const std::string a = sweep.add("ok", 1, pretraining), b = sweep.add("ok", 2, pretraining);
  EXPECT_EQ(sweep.run().done, 3);
  EXPECT_EQ(sweep.recorder.order.front(), pretraining);
  EXPECT_EQ(sweep.recorder.order.size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(sweep.dir(pretraining) / "best.safetensors"));
}

TEST(Supervisor, KeepsAPretrainingCheckpointThatAPlannedJobOfAnotherRunNeeds) {
  Sweep sweep;
  const std::string pretraining = sweep.add("brief", 1, "", true);
  sweep.add("ok", 1, pretraining);
  sweep.leave_to_another_run(sweep.add("ok", 2, pretraining));
  EXPECT_EQ(sweep.run().done, 2);
  EXPECT_TRUE(std::filesystem::exists(sweep.dir(pretraining) / "best.safetensors"));
}

TEST(Supervisor, AFailedPretrainingBlocksItsChildrenAndNothingElse) {
  Sweep sweep;
  const std::string pretraining = sweep.add("diverge", 1, "", true);
  const std::string child = sweep.add("ok", 1, pretraining), other = sweep.add("ok", 2);
  const RunSummary summary = sweep.run();
  EXPECT_EQ(summary.done, 1);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.blocked, 1);
  EXPECT_EQ(sweep.status(pretraining), "diverged");
  EXPECT_EQ(sweep.status(child), "blocked");
  EXPECT_EQ(sweep.status(other), "done");
}

TEST(Supervisor, StoresTheClassAndTheLogOfEachFailure) {
  Sweep sweep;
  const std::string exits = sweep.add("exit"), segv = sweep.add("segv"), killed = sweep.add("kill"), diverged = sweep.add("diverge");
  const RunSummary summary = sweep.run();
  EXPECT_EQ(summary.failed, 4);
  const auto states = sweep.store().stage_states();
  EXPECT_EQ(states.at(exits).status, "crashed");
  EXPECT_THAT(states.at(exits).message, HasSubstr("exit code 3"));
  EXPECT_THAT(states.at(exits).log_tail, HasSubstr("something odd happened"));
  EXPECT_EQ(states.at(segv).status, "crashed");
  EXPECT_THAT(states.at(segv).message, HasSubstr("signal 11"));
  EXPECT_EQ(states.at(killed).status, "killed");
  EXPECT_EQ(states.at(diverged).status, "diverged");
  EXPECT_EQ(states.at(diverged).message, "loss is nan at step 7");
}

TEST(Supervisor, EndsASilentWorkerAsHungAndASlowOneAsTimeout) {
  Sweep sweep;
  sweep.options.limits.silence_s = 0.5;
  sweep.options.limits.wall_s = 1.5;
  const std::string silent = sweep.add("silent"), slow = sweep.add("slow");
  sweep.run();
  EXPECT_EQ(sweep.status(silent), "hung");
  EXPECT_EQ(sweep.status(slow), "timeout");
}

TEST(Supervisor, EndsAWorkerOverItsMemoryLimitAsOutOfMemory) {
  Sweep sweep;
  sweep.options.limits.memory = 200 << 20;
  sweep.options.poll = std::chrono::milliseconds(5);
  const std::string key = sweep.add("grow");
  sweep.run();
  // Either our poll or the limit of the kernel on its data, which the fake worker does not catch, comes first.
  EXPECT_THAT(sweep.status(key), testing::AnyOf("oom", "crashed"));
}

TEST(Supervisor, StopsStubbornWorkersWithinTheLimitOnASignal) {
  Sweep sweep;
  sweep.options.limits.stop_s = 0.5;
  const std::string stubborn = sweep.add("stubborn"), slow = sweep.add("slow"), waiting = sweep.add("ok");
  sweep.recorder.on_progress = [sent = false](const ProgressView& view) mutable {
    if (!sent && view.running.size() == 2 && view.running[0].step > 2 && view.running[1].step > 2) sent = ::kill(::getpid(), SIGINT) == 0;
  };
  const auto start = std::chrono::steady_clock::now();
  const RunSummary summary = sweep.run();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(summary.stopped);
  EXPECT_EQ(summary.left, 3);  // the two that were stopped too: they are for the next run
  EXPECT_EQ(sweep.status(stubborn), "killed");
  EXPECT_EQ(sweep.status(slow), "killed");
  EXPECT_EQ(sweep.status(waiting), "planned");
}

TEST(Supervisor, FailFastStopsAtTheFirstFailureAndMaxFailuresAtTheNth) {
  for (const int64_t most : {1, 2}) {
    Sweep sweep;
    sweep.options.slots.resize(1);
    sweep.options.fail_fast = most == 1;
    sweep.options.max_failures = most;
    for (uint64_t seed = 1; seed <= 4; ++seed) sweep.add("diverge", seed);
    const RunSummary summary = sweep.run();
    EXPECT_TRUE(summary.stopped);
    EXPECT_EQ(summary.failed, most);
    EXPECT_EQ(summary.left, 4 - most);
  }
}

TEST(Supervisor, ShowsEachGpuSlotItsOwnDevice) {
  Sweep sweep;
  sweep.options.slots = make_slots({.threads = 3, .device = "cuda:0,2", .jobs_per_gpu = 2}, 8, 3);
  std::vector<std::string> keys;
  for (uint64_t seed = 1; seed <= 4; ++seed) keys.push_back(sweep.add("brief", seed));
  EXPECT_EQ(sweep.run().done, 4);
  std::map<std::string, int> devices;
  for (const std::string& key : keys) {
    EXPECT_THAT(sweep.seen(key), HasSubstr("device=cuda\n"));
    EXPECT_THAT(sweep.seen(key), HasSubstr("OMP_NUM_THREADS=3\n"));
    ++devices[sweep.seen(key).substr(0, sweep.seen(key).find('\n'))];
  }
  EXPECT_THAT(devices, Contains(Pair("CUDA_VISIBLE_DEVICES=0", 2)));
  EXPECT_THAT(devices, Contains(Pair("CUDA_VISIBLE_DEVICES=2", 2)));
}

TEST(Supervisor, HidesEveryGpuFromCpuSlots) {
  Sweep sweep;
  const std::string key = sweep.add("ok");
  sweep.run();
  EXPECT_THAT(sweep.seen(key), HasSubstr("CUDA_VISIBLE_DEVICES=\n"));
  EXPECT_THAT(sweep.seen(key), HasSubstr("OMP_NUM_THREADS=1\n"));
}

TEST(Supervisor, WorkersDieWithAKilledSupervisorAndRecoveryMarksThem) {
  Sweep sweep;
  const std::string key = sweep.add("slow");
  const pid_t child = ::fork();
  if (child == 0) {
    sweep.run();
    ::_exit(0);
  }
  const std::filesystem::path pid_file = sweep.dir(key) / "pid.txt";
  for (int i = 0; i < 500 && !std::filesystem::exists(pid_file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const pid_t worker = std::stoi(read_file(pid_file));
  ASSERT_TRUE(alive(worker));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int i = 0; i < 200 && alive(worker); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(alive(worker));
  EXPECT_EQ(sweep.status(key), "running");
  EXPECT_EQ(recover(sweep.store(), sweep.options.runs), 1);
  EXPECT_EQ(sweep.status(key), "killed");
  EXPECT_EQ(recover(sweep.store(), sweep.options.runs), 0);
}

TEST(Supervisor, SaysWhichProgramCannotBeStarted) {
  Sweep sweep;
  sweep.options.worker = "no/such/worker";
  sweep.add("ok");
  EXPECT_THAT([&] { sweep.run(); }, testing::ThrowsMessage<Error>(HasSubstr("no/such/worker")));
}

TEST(Slots, RefuseOversubscriptionAndUnknownDevices) {
  EXPECT_EQ(make_slots({}, 4, 0).size(), 4u);
  EXPECT_EQ(make_slots({.threads = 2}, 4, 0).size(), 2u);
  EXPECT_THROW(make_slots({.slots = 3, .threads = 2}, 4, 0), Error);
  EXPECT_THROW(make_slots({.slots = -1}, 4, 0), Error);
  EXPECT_THROW(make_slots({.threads = 0}, 4, 0), Error);
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:0,", "cuda:0,0", "cuda:2", "cuda:-1", "cuda:0 1", ""})
    EXPECT_THROW(make_slots({.device = device}, 4, 2), Error) << device;
  EXPECT_THROW(make_slots({.device = "cuda"}, 4, 0), Error);
  EXPECT_THROW(make_slots({.device = "cuda", .jobs_per_gpu = 0}, 4, 1), Error);
  EXPECT_EQ(make_slots({.device = "cuda", .jobs_per_gpu = 2}, 4, 2).size(), 4u);
}

TEST(Progress, PlainLinesNameStartsAndEndsWithoutControlCodes) {
  std::ostringstream out;
  const auto observer = make_plain_observer(out, std::chrono::seconds(0));
  const StageTask task{.key = "k", .label = "fashion/gru/scratch@F/seed=1", .parent = "", .pretraining = false, .stage = 0, .cost = 1};
  observer->started(task, Slot{});
  observer->progress({.done = 1, .failed = 1, .total = 4, .eta_s = 65, .elapsed_s = 3601, .running = {}});
  observer->ended(task, "diverged", "loss is nan", 7);
  EXPECT_EQ(out.str(),
            "start fashion/gru/scratch@F/seed=1 on cpu\n1/4 stages done, 1 failed, 1:00:01 elapsed, about 1:05 left\n"
            "diverged fashion/gru/scratch@F/seed=1 (0:07): loss is nan\n");
}

TEST(Progress, LiveLinesAreCutToTheTerminalAndRedrawn) {
  std::ostringstream out;
  const auto observer = make_live_observer(out, 30);
  const ProgressView view{.done = 1,
                          .failed = 0,
                          .total = 4,
                          .eta_s = -1,
                          .elapsed_s = 2,
                          .running = {RunningView{.label = std::string(100, 'x'), .slot = "cpu", .metric = {}}}};
  observer->progress(view);
  observer->progress(view);
  EXPECT_THAT(out.str(), HasSubstr("\x1b[2A\x1b[J"));
  for (std::istringstream lines(out.str()); !lines.eof();) {
    std::string line;
    std::getline(lines, line);
    EXPECT_LE(line.size(), 40u);
  }
}

}  // namespace
}  // namespace spt::schedule
