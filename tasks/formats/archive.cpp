#include "tasks/formats/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

/// Nothing is written under these names; an archive with such ones was made to be written somewhere else, and is not trusted.
void check_member_path(const std::filesystem::path& path, const std::filesystem::path& archive) {
  const bool up = std::find(path.begin(), path.end(), "..") != path.end();
  if (path.is_absolute() || up)
    throw DataError("'{}' holds the path '{}', which leads out of the archive", archive.string(), path.string());
}

class ArchiveStream {
 public:
  ArchiveStream(const std::filesystem::path& file, const ArchiveLimits& limits)
      : file_(file), limits_(limits), handle_(archive_read_new(), archive_read_free) {
    SPT_CHECK(handle_ != nullptr, "no memory for an archive");
    // Not all that libarchive knows: for some it starts other programs.
    for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2, archive_read_support_filter_xz})
      support(handle_.get());
  }
  archive* get() { return handle_.get(); }

  void open() {
    constexpr size_t kBlockBytes = 1 << 16;
    if (archive_read_open_filename(handle_.get(), file_.c_str(), kBlockBytes) != ARCHIVE_OK) fail();
  }
  /// The next entry, or null at the end.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(handle_.get(), &entry);
    if (status == ARCHIVE_EOF) return nullptr;
    if (status != ARCHIVE_OK) fail();
    return entry;
  }
  std::string content(std::string_view name) {
    std::string bytes;
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    for (;;) {
      const int status = archive_read_data_block(handle_.get(), &block, &size, &offset);
      if (status == ARCHIVE_EOF) return bytes;
      if (status != ARCHIVE_OK) fail();
      bytes.append(static_cast<const char*>(block), size);
      total_ += static_cast<int64_t>(size);
      if (static_cast<int64_t>(bytes.size()) > limits_.file_bytes)
        throw DataError("'{}': '{}' has more than {} bytes, which no file of such data has", file_.string(), name, limits_.file_bytes);
      if (total_ > limits_.total_bytes)
        throw DataError("'{}': its files have more than {} bytes, which such data have not", file_.string(), limits_.total_bytes);
    }
  }

 private:
  [[noreturn]] void fail() {
    const char* reason = archive_error_string(handle_.get());
    throw DataError("'{}' cannot be read as an archive or compressed file: {} (after {} bytes)", file_.string(),
                    reason ? reason : "damaged or truncated", archive_filter_bytes(handle_.get(), -1));
  }
  std::filesystem::path file_;
  ArchiveLimits limits_;
  int64_t total_ = 0;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
};

}  // namespace

void visit_archive(const std::filesystem::path& file, const ArchiveLimits& limits, const ArchiveVisitor& visit) {
  ArchiveStream stream(file, limits);
  archive_read_support_format_tar(stream.get());
  archive_read_support_format_zip(stream.get());
  stream.open();
  while (archive_entry* entry = stream.next()) {
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr) throw DataError("'{}' holds a file without a readable name", file.string());
    check_member_path(path, file);
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_filetype(entry) == AE_IFLNK)
      throw DataError("'{}': '{}' is a link, not a file", file.string(), path);
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    visit(path, [&stream, path] { return stream.content(path); });
  }
}

}  // namespace spt::formats
