#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "harness/job.h"
#include "models/architecture.h"
#include "protocols/objective.h"

namespace spt::worker {

/// Training FLOPs and tokens of a stage: backward = 2 x forward, so 3 x (a + b B) of a batch padded to its longest row.
class StageCost {
 public:
  StageCost(models::Architecture architecture, models::ModelSpec spec);

  /// Of one executed part.
  double part(const protocols::Prepared& prepared) const;

  /// Expectation over the sampler: `lengths` are (real length, rows) of the train split; a batch is computed in parts, each padded to its
  /// own longest row; a part is drawn without replacement. Retrieval rows count twice. Bucketed batches are drawn, many of them, from a
  /// fixed seed.
  double expected_step(const std::vector<std::pair<int64_t, int64_t>>& lengths, const protocols::Objective& objective, int64_t documents,
                       const TrainOptions& train) const;

 private:
  double expected_part(const std::vector<std::pair<int64_t, int64_t>>& lengths, double positions, int64_t total, int64_t rows) const;
  double expected_bucketed(const std::vector<std::pair<int64_t, int64_t>>& lengths, double positions, int64_t total, int64_t documents,
                           const TrainOptions& train) const;
  double training(int64_t length, int64_t rows, double share) const;
  models::Architecture architecture_;
  models::ModelSpec spec_;
};

double mean_length(const std::vector<std::pair<int64_t, int64_t>>& lengths);

/// Parts a batch is computed in: sizes that differ by at most one. Errors: Error if there are more parts than examples.
std::vector<int64_t> part_sizes(int64_t batch, int64_t accumulate);

}  // namespace spt::worker
