#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/base/rng.h"
#include "harness/job.h"
#include "harness/worker/cost.h"
#include "harness/worker/prefetch.h"
#include "protocols/objective.h"
#include "protocols/optimizer.h"
#include "protocols/schedule.h"

namespace spt::worker {

/// A loss or gradient that is not finite. An outcome, not a mistake: stored as failure `diverged`.
class Diverged : public std::runtime_error {
 public:
  Diverged(std::string tensor, const std::string& message) : std::runtime_error(message), tensor_(std::move(tensor)) {}
  const std::string& tensor() const { return tensor_; }  ///< the first bad one: "loss", or a parameter's name

 private:
  std::string tensor_;
};

/// What a stage trains with. Everything that a step does is a function of these, the parameters, the optimizer and the step's number.
struct TrainSetup {
  models::Model& model;
  protocols::Optimizer& optimizer;
  const protocols::Objective& objective;
  std::shared_ptr<const tasks::Dataset> data;
  const TrainOptions& options;
  int64_t steps = 0;
  Rng rng;
  at::Device device{at::kCPU};
  int64_t prefetch_threads = 1;
  const StageCost& cost;
  const std::vector<double>* evaluations =
      nullptr;  ///< selection metric of those done so far, which schedule plateau reads; none: none done
};

/// What was executed so far; restored from a checkpoint.
struct TrainTotals {
  int64_t step = 0;  ///< updates done
  int64_t examples = 0, tokens = 0;
  double flops = 0;
  double train_s = 0, data_wait_s = 0;
};

struct StepReport {
  double loss = 0, lr = 0, gradient_norm = 0;
  double step_s = 0;
};

/// The schedule of a stage: shares of TrainOptions as updates.
protocols::Schedule stage_schedule(const TrainOptions& options, int64_t steps, bool higher_is_better);

/// Updates totals.step .. steps-1 of a stage, whatever its objective.
///
/// Loss of an update = sum over the counted positions of its whole batch / their number; a batch without any has loss 0, and its update is
/// done with zero gradients. Gradients are clipped by global norm after accumulation. Random: order and masks by the sampler; LibTorch's
/// global generator is seeded from "dropout" by the step before each update. `after_step` is called after each update, with totals up to
/// date; false ends the training there. Errors: Diverged before the update that a value which is not finite would have spoiled.
void train_stage(const TrainSetup& setup, TrainTotals& totals, const std::function<bool(const StepReport&)>& after_step);

/// The order in which a stage sees its examples.
Sampler stage_sampler(const TrainSetup& setup);

/// The batch of one step: what the prefetcher makes.
Parts parts_of_step(const TrainSetup& setup, const Sampler& sampler, int64_t step);

/// The same in memory that `device` can copy from by itself, where it is a GPU.
protocols::Prepared page_locked(protocols::Prepared prepared, const at::Device& device);

/// All tensors on `device`, floating values in the type of the model.
protocols::Prepared to_device(const protocols::Prepared& prepared, const at::Device& device, at::ScalarType type);

}  // namespace spt::worker
