#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"

namespace spt::schedule {

/// Brings one run folder's journal into the database as it grows, and remembers what its last lines said.
class JournalFollower {
 public:
  JournalFollower(results::Store& store, std::filesystem::path run_dir, std::string stage_key, int64_t attempt);
  /// Ingests what is new; answers whether there was anything.
  bool poll();
  bool done() const { return done_; }
  const std::optional<results::FailedEvent>& failed() const { return failed_; }
  const std::optional<results::ProgressEvent>& progress() const { return progress_; }
  int64_t step() const { return step_; }

 private:
  results::Store& store_;
  std::filesystem::path journal_;
  std::string stage_key_;
  int64_t attempt_;
  uint64_t offset_;
  int64_t step_ = 0;
  bool done_ = false;
  std::optional<results::FailedEvent> failed_;
  std::optional<results::ProgressEvent> progress_;
};

/// The last lines of a log, for a failure's row.
std::string log_tail(const std::filesystem::path& log, size_t lines = 20);

}  // namespace spt::schedule
