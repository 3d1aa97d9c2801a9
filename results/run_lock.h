#pragma once

#include <filesystem>
#include <string>

namespace spt::results {

/// The right to run jobs on a database: flock(2) on `<database>.lock`, which holds {"host", "pid", "since"} of the holder. The kernel lets
/// go of it when the process ends, however it ends, so a crash leaves no stale lock; the file stays. Readers don't need it.
class RunLock {
 public:
  /// Errors: Error naming the holder (host, process, since when) if another process, or this one, has it; Error if the file cannot be made.
  explicit RunLock(const std::filesystem::path& database);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace spt::results
