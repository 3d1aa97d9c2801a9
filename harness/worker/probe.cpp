#include "harness/worker/probe.h"

#include <algorithm>
#include <chrono>

#include "harness/base/error.h"
#include "harness/worker/evaluate.h"
#include "harness/worker/process.h"
#include "harness/worker/train.h"

namespace spt::worker {
namespace {

using Clock = std::chrono::steady_clock;
double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

ProbeAnswer probe_stage(const Registry& registry, const ProbeQuery& query, const JobSpec& job, size_t index, const at::Device& device) {
  ProbeAnswer answer;
  const auto opening = Clock::now();
  const Stage stage(registry, job, index, query.data_root);
  answer.open_s = seconds(opening);
  const auto model = stage.fresh_model(device);
  const auto optimizer = stage.optimizer(*model);
  TrainTotals totals;
  std::vector<double> times;
  // Without prefetching, so that a step's time holds its data too; the first steps pay for allocations and are left out, as is the first
  // pass of the evaluation.
  constexpr int64_t kWarmup = 3;
  const TrainSetup setup{*model, *optimizer, stage.objective(), stage.train_data(), stage.spec().train, stage.spec().steps, stage.rng(),
                         device, 0,          stage.cost()};
  train_stage(setup, totals, [&](const StepReport& report) {
    if (totals.step > std::min(kWarmup, stage.spec().steps - 1)) times.push_back(report.step_s);
    return static_cast<int64_t>(times.size()) < query.steps;
  });
  answer.step_s = median(times);
  const tasks::Dataset& validation = *stage.task().validation;
  const int64_t examples = std::min<int64_t>(validation.size(), kEvaluationBatch);
  const auto pass = [&] {
    evaluate({*model, stage.objective(), device, 0, {}}, validation, all_indices(examples), stage.rng().stream("mask"));
  };
  pass();
  const auto evaluating = Clock::now();
  pass();
  answer.evaluate_example_s = seconds(evaluating) / static_cast<double>(std::max<int64_t>(1, examples));
  return answer;
}

}  // namespace

std::vector<std::vector<ProbeAnswer>> probe(const ProbeQuery& query, const Registry& registry) {
  const auto preparing = Clock::now();
  const double age = process_age_s();
  const at::Device device = prepare_device(query.device, query.threads);
  const double startup_s = age + seconds(preparing);
  std::vector<std::vector<ProbeAnswer>> answers;
  for (const JobSpec& job : query.jobs) {
    std::vector<ProbeAnswer>& stages = answers.emplace_back();
    for (size_t i = 0; i < job.stages.size(); ++i) {
      try {
        stages.push_back(probe_stage(registry, query, job, i, device));
      } catch (const Error& error) {  // an answer to this query, not an end to the others
        stages.emplace_back().error = error.what();
      } catch (const Diverged& error) {
        stages.emplace_back().error = error.what();
      }
      stages.back().startup_s = startup_s;
    }
  }
  return answers;
}

}  // namespace spt::worker
