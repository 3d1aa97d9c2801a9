#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace spt::formats {

/// What to do with a file in an archive: its path inside, and a function that reads its content, which need not be called.
using ArchiveVisitor = std::function<void(std::string_view path, const std::function<std::string()>& read)>;

/// Visits the regular files of an archive (.tar, also .gz, .xz, .bz2, .zst; .zip) in its order, as a stream: nothing is unpacked to disk.
///
/// Symbolic links and folders are passed over.
/// Errors: DataError naming the archive if it cannot be opened, is damaged or truncated, holds a hard link, a path that is absolute or has
/// "..", or a file of more than 1 GiB that is read.
void visit_archive(const std::filesystem::path& archive, const ArchiveVisitor& visit);

}  // namespace spt::formats
