#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace spt::formats {

/// Unpacks gzip data (one or more members), checking sizes and CRCs.
/// Errors: DataError beginning with `where` for corrupt, truncated or trailing bytes and for more than `max_bytes` of content.
std::string unpack_gzip(std::string_view bytes, int64_t max_bytes, std::string_view where);

/// gzip data of `content`, the same bytes on each call (no time stamp).
std::string pack_gzip(std::string_view content);

/// Content of a file, unpacked when its name ends in .gz or .xz.
/// Errors: DataError naming the file if it cannot be read, is corrupt or truncated, or holds more than `max_bytes`.
std::string read_unpacked(const std::filesystem::path& file, int64_t max_bytes);

/// The same with its SHA-256. What had to be unpacked is kept in `<data root>/cache/`, where that may be written, because unpacking takes
/// seconds: keyed by the packed file's SHA-256, and made again where its content is not what was written.
struct UnpackedFile {
  std::string content;
  std::string sha256;
};
UnpackedFile load_unpacked(const std::filesystem::path& data_root, const std::filesystem::path& file, int64_t max_bytes);

/// `folder`/`name`, else the same with .gz, else with .xz; nothing when none of them is a file.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& folder, const std::string& name);

}  // namespace spt::formats
