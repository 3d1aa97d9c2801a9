#pragma once

#include <string_view>

#include "harness/base/safetensors.h"
#include "models/architecture.h"
#include "results/record.h"

namespace spt::worker {

/// Starts a stage from the one before: copies every tensor of its checkpoint into a freshly drawn model.
///
/// The head is never taken over: its tensors are dropped, the model's keep their own draw, also where shapes agree. An encoder.weight with
/// one more input column than the model's (the mask indicator, last) loses that column. Buffers are copied too. The answer lists every
/// tensor of both sides once: copied, sliced, redrawn (of the model), dropped (of the checkpoint). Errors: Error naming any other tensor
/// that is missing on either side, or differs in shape or dtype. Source: never-from-scratch.md 3.2.
results::TransferEvent transfer(const SafetensorsFile& checkpoint, models::Model& model, std::string_view where);

}  // namespace spt::worker
