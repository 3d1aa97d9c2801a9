#pragma once

#include <cstdint>
#include <string>

#include "harness/job.h"
#include "models/architecture.h"
#include "protocols/objective.h"
#include "tasks/task.h"

namespace spt::worker {

/// A stage as far as its memory goes.
struct MemorySubject {
  const models::Architecture& architecture;
  const models::ModelSpec& spec;
  const protocols::Objective& objective;
  const tasks::TaskFacts& facts;
  const TrainOptions& train;
  std::string profile;
};

/// Largest number of bytes that tensors hold at one time while a new network takes one training step on random rows: weights, gradients,
/// optimizer state, activations, temporaries and the batch itself. What LibTorch's CPU allocator hands out is counted; buffers of libraries
/// are not, nor is the program.
int64_t counted_memory(const MemorySubject& subject, int64_t examples, int64_t length);

/// counted_memory of the largest part of a batch at the longest row of train, to within 30 %, from steps small enough to be taken while
/// planning: with one layer and two, one example and two, and where the row is longer than some 1,000 positions, at three shorter
/// lengths. Bytes are taken to be linear in length, or a parabola where FLOPs grow with its square.
int64_t estimated_memory(const MemorySubject& subject);

}  // namespace spt::worker
