#include "tasks/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/base/error.h"

namespace spt::formats {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) {
    const int reason = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw DataError("cannot read '{}': {}", file.string(), std::strerror(reason));
  }
  size_ = static_cast<size_t>(facts.st_size);
  if (size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  const int reason = errno;
  ::close(descriptor);
  if (data_ == MAP_FAILED) throw DataError("cannot map '{}' into memory: {}", file.string(), std::strerror(reason));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::check_multiple(size_t bytes) const { SPT_CHECK(size_ % bytes == 0, "{} bytes are no whole number of {}", size_, bytes); }

}  // namespace spt::formats
