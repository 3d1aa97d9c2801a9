#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace spt::formats {

/// A file's content without copying it: pages are read when they are touched and shared between processes. The file must not be changed.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file);  ///< Errors: DataError naming the file and the system's reason
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  /// The content as numbers. Errors: SPT_CHECK that it is a whole number of them.
  template <class T>
  std::span<const T> as() const {
    check_multiple(sizeof(T));
    return {static_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  void check_multiple(size_t bytes) const;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace spt::formats
