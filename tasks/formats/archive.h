#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace spt::formats {

/// What to do with a file in an archive: its path inside, and a function that reads its content, which need not be called.
using ArchiveVisitor = std::function<void(std::string_view path, const std::function<std::string()>& read)>;

/// The largest that files of a data set are; more is no such set, and would fill memory or disk.
struct ArchiveLimits {
  int64_t file_bytes = 0;   ///< of one file that is read
  int64_t total_bytes = 0;  ///< of all of them
};

/// Visits the regular files of an archive (.tar, also .gz, .xz, .bz2, .zst; .zip) in its order, as a stream: nothing is unpacked to disk.
///
/// Folders are passed over.
/// Errors: DataError naming the archive (and how far it was read) if it cannot be opened, is damaged or truncated, holds a link, a path
/// that is absolute or has "..", or more than `limits` in files that are read.
void visit_archive(const std::filesystem::path& archive, const ArchiveLimits& limits, const ArchiveVisitor& visit);

}  // namespace spt::formats
