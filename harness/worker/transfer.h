#pragma once

#include <string_view>

#include "harness/base/safetensors.h"
#include "harness/job.h"
#include "models/architecture.h"
#include "results/record.h"

namespace spt::worker {

/// Starts a stage from the one before: copies every tensor of its checkpoint into a freshly drawn model.
///
/// The head is never taken over: its tensors are dropped, the model's keep their own draw, also where shapes agree. An encoder.weight with
/// one more input column than the model's (the mask indicator, last) loses that column. Buffers are copied too. The answer lists every
/// tensor of both sides once: copied, sliced, redrawn (of the model), dropped (of the checkpoint). Errors: Error naming any other tensor
/// that is missing on either side, or differs in shape or dtype. Source: arXiv:2310.02980 and its code.
results::TransferEvent transfer(const SafetensorsFile& checkpoint, models::Model& model, std::string_view where);

/// Starts a first stage from weights that no stage before it made: the same rules, but the encoder is taken over only where all of its
/// tensors are there and fit (another task has other symbols); else it keeps its own draw, and the checkpoint's is dropped. Floating-point
/// values take the model's dtype.
results::TransferEvent transfer_given(const SafetensorsFile& weights, models::Model& model, std::string_view where);

/// Errors: Error if the weights say what they were imported for, and that is another architecture or other options than the job's, those
/// that make it causal apart.
void check_made_for(const SafetensorsFile& weights, const ComponentSpec& job, const models::Architecture& architecture,
                    std::string_view where);

}  // namespace spt::worker
