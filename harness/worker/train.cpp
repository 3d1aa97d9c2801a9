#include "harness/worker/train.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace spt::worker {
namespace {

template <class Visit>
void for_each_tensor(protocols::Prepared& prepared, Visit&& visit) {
  models::ModelInput& input = prepared.input;
  for (at::Tensor* tensor :
       {&input.tokens, &input.values, &input.lengths, &input.decoder_tokens, &input.decoder_lengths, &input.positions, &prepared.target})
    if (tensor->defined()) visit(*tensor);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Forward and backward over the parts of one batch: gradients of the mean over all its counted positions, and that mean.
double accumulate_gradients(const TrainSetup& setup, const Parts& parts, at::ScalarType type) {
  int64_t count = 0;
  for (const protocols::Prepared& part : parts) count += part.count;
  double loss = 0;
  for (const protocols::Prepared& part : parts) {
    if (part.count == 0) continue;
    const protocols::Prepared batch = to_device(part, setup.device, type);
    const at::Tensor mean = setup.objective.loss_sum(setup.model.forward(batch.input), batch) / static_cast<double>(count);
    if (mean.requires_grad()) mean.backward();  // a model without parameters has none
    loss += mean.item<double>();
  }
  return loss;
}

void check_finite(const protocols::Optimizer& optimizer, double loss, double norm, int64_t step) {
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const std::string bad = std::isfinite(loss) ? optimizer.first_bad_gradient() : "loss";
  if (bad.empty()) throw Diverged("global gradient norm", fmt::format("the gradient norm overflowed at step {}", step + 1));
  throw Diverged(bad, fmt::format("{} is not finite at step {}", bad == "loss" ? bad : "gradient of " + bad, step + 1));
}

}  // namespace

protocols::Schedule stage_schedule(const TrainOptions& options, int64_t steps, bool higher_is_better) {
  protocols::Schedule schedule{.name = options.schedule,
                               .steps = steps,
                               .warmup = protocols::warmup_steps(options.warmup, steps),
                               .gamma = options.gamma,
                               .step_size = std::max<int64_t>(1, protocols::share_steps(options.drop_every, steps)),
                               .patience = options.patience,
                               .higher_is_better = higher_is_better,
                               .lr = options.lr};
  if (options.schedule == "multistep")
    for (const double share : milestone_shares(options.milestones, "schedule multistep"))
      schedule.milestones.push_back(protocols::share_steps(share, steps));
  return schedule;
}

void train_stage(const TrainSetup& setup, TrainTotals& totals, const std::function<bool(const StepReport&)>& after_step) {
  const TrainOptions& options = setup.options;
  const at::ScalarType type = setup.model.parameters().empty() ? at::kFloat : setup.model.parameters().front().scalar_type();
  const protocols::Schedule schedule = stage_schedule(options, setup.steps, setup.objective.selection().higher_is_better);
  const auto evaluations = [&] { return setup.evaluations ? std::span<const double>(*setup.evaluations) : std::span<const double>(); };
  const Stream dropout = setup.rng.stream("dropout");
  const Sampler sampler = stage_sampler(setup);
  Prefetcher prefetch(totals.step, setup.steps, setup.prefetch_threads, [&](int64_t step) { return parts_of_step(setup, sampler, step); });
  while (totals.step < setup.steps) {
    const auto start = std::chrono::steady_clock::now();
    const Parts parts = prefetch.next();
    totals.data_wait_s += seconds_since(start);

    torch::manual_seed(dropout.seed(static_cast<uint64_t>(totals.step)));
    setup.model.train();
    setup.optimizer.zero_grad();
    StepReport report;
    report.loss = accumulate_gradients(setup, parts, type);
    report.gradient_norm = setup.optimizer.clip(options.clip);
    check_finite(setup.optimizer, report.loss, report.gradient_norm, totals.step);
    const double factor = protocols::schedule_factor(schedule, totals.step, evaluations());
    setup.optimizer.step(factor);

    for (const protocols::Prepared& part : parts) {
      totals.examples += part.examples;
      totals.tokens += part.tokens;
      totals.flops += setup.cost.part(part);
    }
    ++totals.step;
    report.lr = options.lr * factor;
    report.step_s = seconds_since(start);
    totals.train_s += report.step_s;
    if (!after_step(report)) return;
  }
}

Sampler stage_sampler(const TrainSetup& setup) {
  const Stream order = setup.rng.stream("order");
  if (setup.options.order == "shuffled") return {setup.data->size(), order};
  return {setup.data->size(), order, {setup.options.batch, setup.options.bucket_batches, [data = setup.data](int64_t i) {
                                        return data->length(i);
                                      }}};
}

Parts parts_of_step(const TrainSetup& setup, const Sampler& sampler, int64_t step) {
  const Stream mask = setup.rng.stream("mask");
  Parts parts;
  int64_t first = step * setup.options.batch;
  for (const int64_t size : part_sizes(setup.options.batch, setup.options.accumulate)) {
    const Sampler::Pick pick = sampler.pick(first, size);
    parts.push_back(
        page_locked(setup.objective.prepare(setup.data->batch(pick.indices), std::span<const uint64_t>(pick.epochs), mask), setup.device));
    first += size;
  }
  return parts;
}

protocols::Prepared page_locked(protocols::Prepared prepared, const at::Device& device) {
  if (device.is_cuda()) for_each_tensor(prepared, [](at::Tensor& tensor) { tensor = tensor.pin_memory(); });
  return prepared;
}

protocols::Prepared to_device(const protocols::Prepared& prepared, const at::Device& device, at::ScalarType type) {
  protocols::Prepared moved = prepared;
  // From page-locked memory a GPU copies while the program goes on; the allocator keeps the source until that is done.
  for_each_tensor(moved, [&](at::Tensor& tensor) {
    tensor = tensor.to(device, tensor.is_floating_point() ? type : tensor.scalar_type(), device.is_cuda());
  });
  return moved;
}

}  // namespace spt::worker
