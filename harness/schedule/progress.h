#pragma once

#include <chrono>
#include <memory>
#include <ostream>
#include <string>

#include "harness/schedule/supervisor.h"

namespace spt::schedule {

/// "1:02:03", "4:05", "0:07"; "?" below 0.
std::string format_duration(double seconds);

/// Terminal: one live line a running stage under a summary line, redrawn in place. `width` cuts the lines.
std::unique_ptr<Observer> make_live_observer(std::ostream& out, int width);

/// Pipes and logs: a line when a stage starts and ends, and a summary line every `interval`.
std::unique_ptr<Observer> make_plain_observer(std::ostream& out, std::chrono::seconds interval = std::chrono::seconds(30));

}  // namespace spt::schedule
