#include "harness/worker/evaluate.h"

#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "harness/base/error.h"
#include "harness/worker/prefetch.h"
#include "harness/worker/train.h"

namespace spt::worker {

Evaluation evaluate(const EvaluationSetup& setup, const tasks::Dataset& data, const std::vector<int64_t>& indices, const Stream& mask) {
  const torch::NoGradGuard no_grad;
  setup.model.eval();
  const at::ScalarType type = setup.model.parameters().empty() ? at::kFloat : setup.model.parameters().front().scalar_type();
  const int64_t total = static_cast<int64_t>(indices.size());
  const auto make = [&](int64_t batch) -> Parts {
    const int64_t first = batch * kEvaluationBatch;
    const std::span<const int64_t> part(indices.data() + first, std::min(kEvaluationBatch, total - first));
    return {page_locked(setup.objective.prepare(data.batch(part), kEvaluationEpoch, mask), setup.device)};
  };
  const int64_t batches = (total + kEvaluationBatch - 1) / kEvaluationBatch;
  Prefetcher prefetch(0, batches, setup.prefetch_threads, make);
  const auto metrics = setup.objective.metrics();
  int64_t seen = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const protocols::Prepared prepared = to_device(prefetch.next().front(), setup.device, type);
    seen += prepared.examples;
    if (prepared.count > 0) metrics->add(setup.model.forward(prepared.input), prepared);
    if (setup.objective.decode_length() > 0) metrics->add(setup.model.decode(prepared.input, setup.objective.decode_length()), prepared);
    if (setup.after_batch) setup.after_batch();
  }
  SPT_CHECK(seen == total, "{} of {} examples were evaluated", seen, total);
  return {metrics->values(), metrics->scores(), metrics->predicted()};
}

std::vector<int64_t> all_indices(int64_t n) {
  std::vector<int64_t> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<int64_t> evaluation_steps(int64_t steps, int64_t evaluations) {
  std::vector<int64_t> at;
  for (int64_t k = 1; k <= evaluations; ++k) at.push_back((k * steps + evaluations - 1) / evaluations);
  return at;
}

bool is_better(double value, double best, bool higher_is_better) {
  if (std::isnan(value)) return false;
  if (std::isnan(best)) return true;
  return higher_is_better ? value > best : value < best;
}

double metric_value(const std::vector<protocols::MetricValue>& metrics, const std::string& name) {
  for (const protocols::MetricValue& metric : metrics)
    if (metric.name == name) return metric.value;
  check_failed(__FILE__, __LINE__, "found", fmt::format("no metric '{}' was evaluated", name));
}

bool selected_late(int64_t index, int64_t evaluations) { return 10 * index > 9 * evaluations; }

}  // namespace spt::worker
