#pragma once

#include <string>
#include <vector>

#include "harness/plan.h"
#include "harness/work.h"
#include "harness/worker_client.h"
#include "results/store.h"

namespace spt {

/// What the time of the stages that are left was estimated from.
struct Estimate {
  std::vector<double> stage_s;      ///< one a stage of the plan; 0 for what is not run
  double total_s = 0;               ///< device seconds, one stage after the other
  size_t measured = 0, probed = 0;  ///< stages by the source of their estimate
  double slots_s(int64_t slots) const { return total_s / static_cast<double>(slots); }
};

struct EstimateOptions {
  std::string data_root;
  std::string device = "cpu";
  int64_t threads = 1;
};

/// Stages whose steps cost the same (same model, batch and objective) share a time a step: measured in the database under the same build,
/// device kind and thread count where there is one, else by a probe of 3 steps of the worker.
/// Errors: Error if a probe fails.
Estimate estimate_time(const Plan& plan, const Work& work, const std::vector<results::AttemptTimes>& times, WorkerClient& worker,
                       const EstimateOptions& options);

/// The estimate and its source in words.
std::string time_text(const Estimate& estimate, int64_t slots);

}  // namespace spt
