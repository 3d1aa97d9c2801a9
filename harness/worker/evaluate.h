#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "harness/base/rng.h"
#include "models/architecture.h"
#include "protocols/objective.h"

namespace spt::worker {

inline constexpr int64_t kEvaluationBatch = 64;             ///< examples; no option, so that scores do not depend on how a stage is trained
inline constexpr uint64_t kEvaluationEpoch = ~uint64_t{0};  ///< masks of evaluation are those of an epoch that training never meets

struct Evaluation {
  std::vector<protocols::MetricValue> metrics;  ///< "loss" and the objective's own
  std::vector<float> scores;                    ///< per example, in dataset order; empty but for supervised objectives
  std::vector<int32_t> predicted;
};

struct EvaluationSetup {
  models::Model& model;
  const protocols::Objective& objective;
  at::Device device{at::kCPU};
  int64_t prefetch_threads = 1;
  std::function<void()> after_batch;  ///< heartbeat; may throw to end the pass
};

/// Every example of `indices` exactly once, in that order, dropout off, no gradients. The model is left in evaluation mode.
/// Random: masks from `mask` at kEvaluationEpoch; nothing that training draws from.
Evaluation evaluate(const EvaluationSetup& setup, const tasks::Dataset& data, const std::vector<int64_t>& indices, const Stream& mask);

/// 0 .. n-1.
std::vector<int64_t> all_indices(int64_t n);

/// Steps after which a stage is evaluated: ceil(k steps / evaluations), k = 1 .. evaluations; repeated where there are more of them than
/// steps.
std::vector<int64_t> evaluation_steps(int64_t steps, int64_t evaluations);

/// Whether `value` beats `best` for a metric of this direction: strictly, so ties go to the earlier; NaN is worst.
bool is_better(double value, double best, bool higher_is_better);

/// The value of a named metric. Errors: SPT_CHECK if it is not there.
double metric_value(const std::vector<protocols::MetricValue>& metrics, const std::string& name);

/// Selected among the last tenth of the evaluations: training longer might still have helped.
bool selected_late(int64_t index, int64_t evaluations);

}  // namespace spt::worker
