#include "harness/worker/cost.h"

#include <algorithm>

#include "harness/base/error.h"
#include "protocols/batches.h"

namespace spt::worker {

StageCost::StageCost(models::Architecture architecture, models::ModelSpec spec)
    : architecture_(std::move(architecture)), spec_(std::move(spec)) {}

double StageCost::training(int64_t length, int64_t rows, double share) const {
  models::ModelSpec spec = spec_;
  spec.head.share = share;
  const models::Flops forward = models::model_flops(architecture_, spec, length);
  const double count = static_cast<double>(spec_.head.kind == "retrieval" ? rows / 2 : rows);
  return 3.0 * (forward.fixed + forward.per_example * count);
}

double StageCost::part(const protocols::Prepared& prepared) const {
  const protocols::RowSizes sizes = protocols::row_sizes(prepared.input);
  const double all = static_cast<double>(sizes.rows * sizes.length);
  const bool some = prepared.input.positions.defined();
  return training(sizes.length, sizes.rows, some ? static_cast<double>(prepared.input.positions.size(0)) / all : 1.0);
}

double StageCost::expected_step(const std::vector<std::pair<int64_t, int64_t>>& lengths, const protocols::Objective& objective,
                                int64_t documents, int64_t batch, int64_t accumulate) const {
  int64_t total = 0;
  double positions = 0;
  for (const auto& [length, count] : lengths) {
    total += count;
    positions += objective.expected_positions(length) * static_cast<double>(count);
  }
  SPT_CHECK(total > 0, "no train lengths");
  double expected = 0;
  for (const int64_t part : part_sizes(batch, accumulate)) {
    const int64_t rows = part * documents;
    const int64_t drawn = std::min(rows, total);
    double below = 0;  // probability that no row is longer than the lengths before
    int64_t within = 0;
    for (const auto& [length, count] : lengths) {
      within += count;
      double at_most = 1;
      for (int64_t i = 0; i < drawn && at_most > 0; ++i)
        at_most *= static_cast<double>(std::max<int64_t>(0, within - i)) / static_cast<double>(total - i);
      if (at_most > below) {
        const double share = positions < 0 ? 1.0 : std::min(1.0, positions / static_cast<double>(total) / static_cast<double>(length));
        expected += (at_most - below) * training(length, rows, share);
      }
      below = at_most;
    }
  }
  return expected;
}

double mean_length(const std::vector<std::pair<int64_t, int64_t>>& lengths) {
  double sum = 0, count = 0;
  for (const auto& [length, n] : lengths) {
    sum += static_cast<double>(length) * static_cast<double>(n);
    count += static_cast<double>(n);
  }
  return count == 0 ? 0 : sum / count;
}

std::vector<int64_t> part_sizes(int64_t batch, int64_t accumulate) {
  if (accumulate < 1 || accumulate > batch) throw Error("a batch of {} cannot be computed in {} parts", batch, accumulate);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < accumulate; ++i) sizes.push_back((i + 1) * batch / accumulate - i * batch / accumulate);
  return sizes;
}

}  // namespace spt::worker
