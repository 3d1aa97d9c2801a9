#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/catalog.h"
#include "harness/schedule/slots.h"
#include "results/store.h"

namespace spt::schedule {

/// One stage that is to be run.
struct StageTask {
  std::string key;
  std::string label;         ///< for people: fashion/s4d/spt-masked@P+F/seed=1, or "... (pretrain)"
  std::string parent;        ///< key of the stage it starts from; "" for none
  bool pretraining = false;  ///< others start from its checkpoint
  int64_t stage = 0;         ///< index in the chain
  double cost = 1;           ///< expected, in any unit that all tasks share (seconds, FLOPs): the weight of its progress
};

struct Limits {
  double wall_s = 0;       ///< longest run of one stage; 0: none
  double silence_s = 900;  ///< longest time without a journal event; 0: none
  int64_t memory = 0;      ///< bytes of one worker; 0: none
  double stop_s = 4;       ///< from a request to stop to SIGKILL
};

enum class Keep { kNone, kBest };

struct RunOptions {
  std::filesystem::path worker;
  std::filesystem::path runs;  ///< folder of the run folders: `<db>.runs`
  std::filesystem::path data_root;
  std::vector<Slot> slots;
  Limits limits;
  Keep keep = Keep::kNone;
  bool fail_fast = false;
  int64_t max_failures = 0;  ///< stop after so many failed stages; 0: never
  int64_t prefetch_threads = 1;
  double checkpoint_s = 30;
  bool resume_across = false;
  std::chrono::milliseconds poll{200};
};

struct RunSummary {
  int64_t done = 0, failed = 0, blocked = 0, left = 0;        ///< stages
  bool stopped = false;                                       ///< by a signal, fail_fast or max_failures
  std::vector<std::pair<std::string, std::string>> failures;  ///< (label, "class: message")
};

/// What is running, for a display.
struct RunningView {
  std::string label, slot;
  int64_t step = 0, steps = 0;
  double loss = 0;
  std::string metric;
  double metric_value = 0;
  double eta_s = -1;  ///< of this stage; below 0: unknown
};
struct ProgressView {
  int64_t done = 0, failed = 0, total = 0;
  double eta_s = -1;  ///< of the whole run
  double elapsed_s = 0;
  std::vector<RunningView> running;
};

/// Told what happens; called on the supervisor's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void started(const StageTask& task, const Slot& slot) = 0;
  virtual void ended(const StageTask& task, const std::string& status, const std::string& message, double seconds) = 0;
  virtual void progress(const ProgressView& view) = 0;
};

/// Runs the tasks, each in a worker process, parents before children, and is the only writer of the database while it does.
/// A failed stage is a row and blocks the stages that start from it; the others go on. SIGINT and SIGTERM stop it cleanly: workers get
/// SIGTERM, then SIGKILL after limits.stop_s. Errors: Error if the database cannot be written (the workers are ended first).
class Supervisor {
 public:
  Supervisor(results::Store& store, RunOptions options, std::vector<StageTask> tasks,
             std::function<JobSpec(const std::string& key)> spec_of, Observer& observer);
  ~Supervisor();
  RunSummary run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends what an earlier supervisor left behind: stages that the database holds for running get the rest of their journals, and are `killed`
/// where the journal has no end. Call with the run lock held. Answers how many there were.
int64_t recover(results::Store& store, const std::filesystem::path& runs);

}  // namespace spt::schedule
