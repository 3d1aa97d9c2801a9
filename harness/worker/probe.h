#pragma once

#include "harness/catalog.h"
#include "harness/worker/stage.h"

namespace spt::worker {

/// Times a few updates and one evaluated batch of every stage of every job, from fresh parameters; stores nothing, and reads no test
/// example.
std::vector<std::vector<ProbeAnswer>> probe(const ProbeQuery& query, const Registry& registry = {});

}  // namespace spt::worker
