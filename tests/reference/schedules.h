#pragma once

#include "protocols/schedule.h"
#include "tests/reference/case.h"

namespace spt::reference {

/// A schedule by the published names of its settings, all of those that the schedule reads and no other: warmup_steps, total_steps,
/// milestones, gamma, step_size, mode, factor, patience. No schedule that a case names has a warm-up unless it says so.
protocols::Schedule read_schedule(const std::string& name, JsonReader& reader);

}  // namespace spt::reference
