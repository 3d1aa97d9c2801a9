#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace spt {

/// Whole content. Errors: Error naming the file.
std::string read_file(const std::filesystem::path& file);

/// Writes `file` so that a crash leaves the old content or the new one: temporary file beside it, fsync, rename, fsync of the folder.
/// Errors: Error naming the file and the system's reason (a full disk leaves the old file and no temporary).
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

/// A file that grows by whole records: each append is one write(2) with O_APPEND.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& file);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  void append(std::string_view record);  ///< Errors: Error naming the file; a short write is completed or reported
  void sync();                           ///< fsync

 private:
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace spt
