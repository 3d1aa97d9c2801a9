#pragma once

#include "harness/catalog.h"
#include "harness/worker/stage.h"

namespace spt::worker {

/// The registries of this program as data. Opens nothing.
Catalog make_catalog();

/// Facts of tasks, and counts, optimizer groups, FLOPs and memory of models: built on this machine, never trained. What a query got wrong
/// is in its answer.
DescribeAnswer describe(const DescribeQuery& query, const Registry& registry = {});

}  // namespace spt::worker
