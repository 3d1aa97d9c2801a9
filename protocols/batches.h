#pragma once

#include <ATen/core/Tensor.h>

#include "protocols/objective.h"

namespace spt::protocols {

/// What every objective takes over from a batch: tokens or values, lengths (left undefined when no row has padding, which spares the model
/// its masks), decoder sequences, example ids and the counts of examples and tokens. Target, positions and count are left to the objective.
Prepared prepared_from(const tasks::Batch& batch);

/// Sizes of the sequence part of a batch. rows = documents * B.
struct RowSizes {
  int64_t rows = 0, length = 0;
};
RowSizes row_sizes(const models::ModelInput& input);

/// The sequence target of pretraining at flat positions (n): ids (n), grey levels (n), or values (n, channels).
at::Tensor sequence_target(const tasks::Batch& batch, const at::Tensor& positions, bool levels);

/// Loss and metrics of both pretraining objectives: classes (cross-entropy, accuracy) for tokens and levels, else absolute error (mae, r2).
bool predicts_classes(const tasks::TaskFacts& facts);  ///< Errors: Error for an unknown value_loss
int64_t sequence_outputs(const tasks::TaskFacts& facts);
at::Tensor sequence_loss_sum(const at::Tensor& output, const at::Tensor& target);
std::unique_ptr<Metrics> sequence_metrics(bool classes);

}  // namespace spt::protocols
