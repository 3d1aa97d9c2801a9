#include "harness/estimate.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "harness/base/error.h"

namespace spt {
namespace {

/// Seconds of the stages of one model: a step, an evaluated example, and what comes once.
struct Speed {
  double step_s = 0, evaluation_s = 0, once_s = 0;
  bool measured = false;
};

size_t model_of(const Plan& plan, const PlanStage& stage) { return plan.cells[stage.cell].costs[stage.index].model; }
const StageSpec& spec_of(const Plan& plan, const PlanStage& stage) { return plan.cells[stage.cell].spec.stages[stage.index]; }

/// Examples that one evaluation reads: validation and as many of train.
double evaluated_examples(const TaskAnswer& task) {
  return static_cast<double>(task.validation_size + std::min(task.validation_size, task.train_size));
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

class TimeEstimator {
 public:
  TimeEstimator(const Plan& plan, const Work& work, const EstimateOptions& options) : plan_(plan), work_(work), options_(options) {}

  void take_measured(const std::vector<results::AttemptTimes>& times) {
    std::unordered_map<std::string, size_t> index;
    for (size_t i = 0; i < plan_.stages.size(); ++i) index.emplace(plan_.stages[i].key, i);
    struct Sum {
      double steps = 0, train_s = 0, evaluations = 0, evaluate_s = 0, rest_s = 0, n = 0;
    };
    std::map<size_t, Sum> sums;
    for (const results::AttemptTimes& time : times) {
      const auto found = index.find(time.stage_key);
      if (found == index.end() || time.steps <= 0 || !same_stamp(time.stamp)) continue;
      const PlanStage& stage = plan_.stages[found->second];
      Sum& sum = sums[model_of(plan_, stage)];
      sum.steps += static_cast<double>(time.steps);
      sum.train_s += time.train_s;
      sum.evaluations += static_cast<double>(spec_of(plan_, stage).evaluations);
      sum.evaluate_s += time.evaluate_s;
      sum.rest_s += std::max(0.0, time.wall_s - time.train_s - time.evaluate_s);
      ++sum.n;
    }
    for (const auto& [model, sum] : sums)
      speeds_[model] = {sum.train_s / sum.steps, sum.evaluate_s / sum.evaluations, sum.rest_s / sum.n, true};
  }

  // A few jobs whose stages cover every model that is left and was not measured.
  void probe(WorkerClient& worker) {
    std::map<size_t, bool> open;
    for (const size_t i : work_.run)
      if (const size_t model = model_of(plan_, plan_.stages[i]); !speeds_.contains(model)) open[model] = true;
    if (open.empty()) return;
    ProbeQuery query{options_.data_root, options_.device, options_.threads, 3, {}};
    std::vector<const PlanCell*> cells;
    for (const size_t length : {size_t{2}, size_t{1}}) {  // a chain of two covers two models
      for (const PlanCell& cell : plan_.cells) {
        const bool covers =
            std::any_of(cell.costs.begin(), cell.costs.end(), [&](const StageCost& cost) { return open.contains(cost.model); });
        if (cell.costs.size() < length || !covers) continue;
        query.jobs.push_back(plan_.job_spec(cell, 0));
        cells.push_back(&cell);
        for (const StageCost& cost : cell.costs) open.erase(cost.model);
      }
    }
    const auto answers = worker.probe(query);
    for (size_t i = 0; i < cells.size(); ++i)
      for (size_t stage = 0; stage < answers[i].size(); ++stage) take_probe(*cells[i], stage, answers[i][stage]);
  }

  Estimate estimate() const {
    Estimate result;
    result.stage_s.resize(plan_.stages.size());
    for (const size_t i : work_.run) {
      const PlanStage& stage = plan_.stages[i];
      const StageSpec& spec = spec_of(plan_, stage);
      const Speed& speed = speeds_.at(model_of(plan_, stage));
      result.stage_s[i] =
          static_cast<double>(spec.steps) * speed.step_s + static_cast<double>(spec.evaluations) * speed.evaluation_s + speed.once_s;
      result.total_s += result.stage_s[i];
      ++(speed.measured ? result.measured : result.probed);
    }
    return result;
  }

 private:
  bool same_stamp(const results::Stamp& stamp) const {
    return stamp.build_id == plan_.catalog.build_id && stamp.device_kind == options_.device && stamp.threads == options_.threads;
  }

  void take_probe(const PlanCell& cell, size_t stage, const ProbeAnswer& answer) {
    if (!answer.error.empty()) throw Error("probe of {}, stage {}: {}", plan_.cell_name(cell), cell.spec.stages[stage].name, answer.error);
    if (speeds_.contains(cell.costs[stage].model)) return;
    const TaskAnswer& task = plan_.tasks[cell.task];
    // Once: start, data, the reload check on validation, and for a supervised stage the test read.
    const bool supervised = stage + 1 == cell.spec.stages.size();
    const auto once = static_cast<double>(task.validation_size + (supervised ? task.test_size : 0));
    speeds_[cell.costs[stage].model] = {answer.step_s, evaluated_examples(task) * answer.evaluate_example_s,
                                        answer.startup_s + answer.open_s + once * answer.evaluate_example_s, false};
  }

  const Plan& plan_;
  const Work& work_;
  const EstimateOptions& options_;
  std::map<size_t, Speed> speeds_;
};

}  // namespace

Estimate estimate_time(const Plan& plan, const Work& work, const std::vector<results::AttemptTimes>& times, WorkerClient& worker,
                       const EstimateOptions& options) {
  TimeEstimator estimator(plan, work, options);
  estimator.take_measured(times);
  estimator.probe(worker);
  return estimator.estimate();
}

std::string time_text(const Estimate& estimate, int64_t slots) {
  if (estimate.measured + estimate.probed == 0) return "nothing left to run";
  return fmt::format("about {} of one slot, {} on {} ({} stages from measured steps of this build, {} from a probe of 3 steps)",
                     duration_text(estimate.total_s), duration_text(estimate.slots_s(slots)), slots, estimate.measured, estimate.probed);
}

}  // namespace spt
