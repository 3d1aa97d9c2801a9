#pragma once

#include <filesystem>

#include "harness/worker/stage.h"
#include "results/record.h"

namespace spt::worker {

/// Trains the stage that `dir`/request.json asks for, from its last checkpoint where there is a usable one, and tells everything in
/// `dir`/journal.jsonl. True: done. False: it ended otherwise, and the last line says how.
///
/// The selected checkpoint is read back from disk into a fresh model and validation evaluated again (equal to 0 ulp on CPU) before test is
/// read, once. Errors: Error only where the request cannot be read or the journal not be written; everything else is a line.
bool run_stage(const std::filesystem::path& dir, const Registry& registry = {});

/// The failure that the exception in flight stands for. Call inside a catch block.
results::FailedEvent failure_in_flight();

}  // namespace spt::worker
