#pragma once

#include <string>

#include "results/record.h"

namespace spt::worker {

/// ELF build id of the running program, hexadecimal; "none" where the linker wrote none.
std::string build_id();
std::string libtorch_version();
std::string compiler_version();

/// The numerics stamp of this process on `device` ("cpu" or "cuda") with `threads` threads.
results::Stamp make_stamp(const std::string& device, int64_t threads);

/// Whether a checkpoint of stamp `then` may go on under `now`: equal, or the same build and device kind, or `across`.
struct ResumeVerdict {
  bool allowed = false;
  bool equal = false;  ///< bits are promised to be those of an undisturbed run
  std::string note;    ///< what differs; "" if equal
};
ResumeVerdict may_resume(const results::Stamp& then, const results::Stamp& now, bool across);

}  // namespace spt::worker
