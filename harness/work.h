#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/plan.h"
#include "results/store.h"

namespace spt {

enum class StageWork {
  kDone,  ///< its result is in the database, or nothing that is left to do needs it
  kRun,
  kStays,    ///< failed in a way that is not repeated
  kBlocked,  ///< the stage it starts from stays failed
};

struct WorkOptions {
  std::set<std::string> retry;  ///< failure classes to repeat beside those that always are
  /// Whether the checkpoint of a done pretraining stage is still there; it is trained again where it is not. Empty: it is.
  std::function<bool(const std::string& stage_key)> has_checkpoint;
};

/// A plan minus what is finished.
struct Work {
  std::vector<StageWork> stages;  ///< one a stage of the plan
  std::vector<size_t> run;        ///< those to run, parents before children
  int64_t jobs = 0, jobs_done = 0, jobs_run = 0, jobs_failed = 0, jobs_blocked = 0;
};

/// Repeated always: killed, crashed, timeout, hung, and what was never ended; once: oom; not: diverged and data, unless retry names them.
/// Blocked stages follow the stage they start from. A pretraining stage that no unfinished job needs is not run.
/// Errors: Error for a class in `retry` that there is not.
Work work_left(const Plan& plan, const std::unordered_map<std::string, results::StageState>& states, const WorkOptions& options = {});

}  // namespace spt
