#include "tasks/formats/cache_folder.h"

#include <unistd.h>

namespace spt::formats {

bool may_write(const std::filesystem::path& folder) {
  using std::filesystem::perms;
  const perms anyone = perms::owner_write | perms::group_write | perms::others_write;
  std::error_code problem;
  return (std::filesystem::status(folder, problem).permissions() & anyone) != perms::none && ::access(folder.c_str(), W_OK) == 0;
}

std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& data_root) {
  const std::filesystem::path cache = data_root / "cache";
  std::error_code problem;
  if (!std::filesystem::exists(cache, problem)) {
    if (!may_write(data_root)) return std::nullopt;
    std::filesystem::create_directory(cache, problem);
  }
  return may_write(cache) ? std::optional(cache) : std::nullopt;
}

}  // namespace spt::formats
