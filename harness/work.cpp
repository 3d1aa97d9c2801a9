#include "harness/work.h"

#include <algorithm>

#include "harness/base/error.h"

namespace spt {
namespace {

using results::StageState;

bool is_repeated(const StageState& state, const std::set<std::string>& retry) {
  if (retry.contains(state.status)) return true;
  if (state.status == "oom") return state.oom_attempts < 2;
  return state.status != "diverged" && state.status != "data";
}

// What a stage is by itself, before the stages around it count.
StageWork own_work(const PlanStage& stage, const std::unordered_map<std::string, StageState>& states, const std::set<std::string>& retry) {
  const auto state = states.find(stage.key);
  if (state == states.end()) return StageWork::kRun;
  if (state->second.status == "done") return StageWork::kDone;
  return is_repeated(state->second, retry) ? StageWork::kRun : StageWork::kStays;
}

void check_retry(const std::set<std::string>& retry) {
  static const std::vector<std::string> kClasses = {"blocked", "crashed", "data", "diverged", "hung", "killed", "oom", "timeout"};
  for (const std::string& name : retry)
    if (std::find(kClasses.begin(), kClasses.end(), name) == kClasses.end())
      throw Error("{}", unknown_name("failure class", name, kClasses));
}

// A job that stands in two arms is one job.
void count_jobs(const Plan& plan, Work& work) {
  std::vector<bool> counted(plan.stages.size(), false);
  for (const PlanCell& cell : plan.cells) {
    for (size_t seed = 0; seed < plan.matrix.seeds.size(); ++seed) {
      const size_t stage = cell.stages.back() + seed;
      if (counted[stage]) continue;
      counted[stage] = true;
      const StageWork last = work.stages[stage];
      ++work.jobs;
      ++(last == StageWork::kDone    ? work.jobs_done
         : last == StageWork::kRun   ? work.jobs_run
         : last == StageWork::kStays ? work.jobs_failed
                                     : work.jobs_blocked);
    }
  }
}

}  // namespace

Work work_left(const Plan& plan, const std::unordered_map<std::string, StageState>& states, const WorkOptions& options) {
  check_retry(options.retry);
  const size_t count = plan.stages.size();
  Work work;
  work.stages.resize(count);
  std::vector<bool> needed(count, false), is_parent(count, false);
  for (size_t i = 0; i < count; ++i) work.stages[i] = own_work(plan.stages[i], states, options.retry);
  for (size_t i = count; i-- > 0;) {  // children before parents
    const PlanStage& stage = plan.stages[i];
    const bool wanted = !is_parent[i] || needed[i];
    if (!wanted) work.stages[i] = StageWork::kDone;
    else if (is_parent[i] && work.stages[i] == StageWork::kDone && options.has_checkpoint && !options.has_checkpoint(stage.key))
      work.stages[i] = StageWork::kRun;
    if (stage.parent < 0) continue;
    is_parent[static_cast<size_t>(stage.parent)] = true;
    if (work.stages[i] == StageWork::kRun) needed[static_cast<size_t>(stage.parent)] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t parent = plan.stages[i].parent;
    if (work.stages[i] == StageWork::kRun && parent >= 0) {
      const StageWork above = work.stages[static_cast<size_t>(parent)];
      if (above == StageWork::kStays || above == StageWork::kBlocked) work.stages[i] = StageWork::kBlocked;
    }
    if (work.stages[i] == StageWork::kRun) work.run.push_back(i);
  }
  count_jobs(plan, work);
  return work;
}

}  // namespace spt
