#include "results/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace spt::results {
namespace {

std::string lock_holder() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return canonical({{"host", host.data()}, {"pid", static_cast<int64_t>(::getpid())}, {"since", since.data()}}) + "\n";
}

// What the holder wrote; it may be at it just now, or on a file system that does not share it yet.
std::string describe_holder(int descriptor, const std::string& file) {
  std::array<char, 1024> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  try {
    const nlohmann::json json = parse_json(std::string_view(text.data(), size > 0 ? static_cast<size_t>(size) : 0), file);
    JsonReader reader(json, file);
    const auto host = reader.get<std::string>("host");
    const auto pid = reader.get<int64_t>("pid");
    return fmt::format("process {} on host '{}' since {}", pid, host, reader.get<std::string>("since"));
  } catch (const Error&) {
    return "another process";
  }
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& database) {
  std::error_code unknown;
  if (std::filesystem::is_directory(database, unknown)) throw Error("database '{}' is a folder; name a file", database.string());
  const std::string file = database.string() + ".lock";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw Error("cannot open the lock '{}': {}", file, std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string holder = describe_holder(descriptor_, file);
    ::close(descriptor_);
    if (reason != EWOULDBLOCK) throw Error("cannot lock '{}': {}", file, std::strerror(reason));
    throw Error("database '{}' is in use by a run: {}; wait for it, stop it, or name another with --db", database.string(), holder);
  }
  const std::string text = lock_holder();
  const bool written =
      ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) {
    const int reason = errno;
    ::close(descriptor_);
    throw Error("cannot write the lock '{}': {}", file, std::strerror(reason));
  }
}

RunLock::~RunLock() { ::close(descriptor_); }

}  // namespace spt::results
