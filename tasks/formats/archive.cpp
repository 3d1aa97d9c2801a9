#include "tasks/formats/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

constexpr int64_t kMaxMemberBytes = int64_t{1} << 30;

/// Nothing is written under these names; an archive with such ones was made to be written somewhere else, and is not trusted.
void check_member_path(const std::filesystem::path& path, const std::filesystem::path& archive) {
  const bool up = std::find(path.begin(), path.end(), "..") != path.end();
  if (path.is_absolute() || up)
    throw DataError("'{}' holds the path '{}', which leads out of the archive", archive.string(), path.string());
}

class ArchiveStream {
 public:
  explicit ArchiveStream(const std::filesystem::path& file) : file_(file), handle_(archive_read_new(), archive_read_free) {
    SPT_CHECK(handle_ != nullptr, "no memory for an archive");
    archive_read_support_filter_all(handle_.get());
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
  std::string content() {
    std::string bytes;
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    for (;;) {
      const int status = archive_read_data_block(handle_.get(), &block, &size, &offset);
      if (status == ARCHIVE_EOF) return bytes;
      if (status != ARCHIVE_OK) fail();
      if (static_cast<int64_t>(bytes.size() + size) > kMaxMemberBytes)
        throw DataError("'{}' holds a file of more than {} bytes, which no data set here has", file_.string(), kMaxMemberBytes);
      bytes.append(static_cast<const char*>(block), size);
    }
  }

 private:
  [[noreturn]] void fail() {
    const char* reason = archive_error_string(handle_.get());
    throw DataError("'{}' cannot be read as an archive or compressed file: {}", file_.string(), reason ? reason : "damaged or truncated");
  }
  std::filesystem::path file_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
};

}  // namespace

void visit_archive(const std::filesystem::path& file, const ArchiveVisitor& visit) {
  ArchiveStream stream(file);
  archive_read_support_format_tar(stream.get());
  archive_read_support_format_zip(stream.get());
  stream.open();
  while (archive_entry* entry = stream.next()) {
    const char* path = archive_entry_pathname(entry);
    if (archive_entry_hardlink(entry) != nullptr)
      throw DataError("'{}': '{}' is a link, not a file", file.string(), path == nullptr ? "?" : path);
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    if (path == nullptr) throw DataError("'{}' holds a file without a readable name", file.string());
    check_member_path(path, file);
    visit(path, [&stream] { return stream.content(); });
  }
}

}  // namespace spt::formats
