#pragma once

#include <filesystem>
#include <optional>

namespace spt::formats {

/// Whether files may be made in a folder. Root may write anywhere; a folder that is marked read-only is left alone nevertheless.
bool may_write(const std::filesystem::path& folder);

/// `<data root>/cache`, made if it is not there; nothing where it may not be written, as in a data root that many users share.
std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& data_root);

}  // namespace spt::formats
