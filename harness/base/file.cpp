#include "harness/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/base/error.h"

namespace spt {
namespace {

[[noreturn]] void throw_errno(std::string_view what, const std::filesystem::path& file) {
  throw Error("cannot {} '{}': {}", what, file.string(), std::strerror(errno));
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write", file);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags) : value(::open(file.c_str(), flags | O_CLOEXEC, 0644)) {
    if (value < 0) throw_errno("open", file);
  }
  ~Descriptor() { ::close(value); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int value;
};

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw_errno("read", file);
  if (std::filesystem::is_directory(file)) throw Error("cannot read '{}': it is a folder", file.string());
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw_errno("read", file);
  return content;
}

void write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const std::filesystem::path temporary = file.string() + fmt::format(".tmp{}", ::getpid());
  try {
    {
      const Descriptor out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
      write_all(out.value, content, file);
      if (::fsync(out.value) != 0) throw_errno("flush", file);
    }
    if (::rename(temporary.c_str(), file.c_str()) != 0) throw_errno("rename to", file);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const Descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  ::fsync(directory.value);  // some file systems refuse it for folders: the rename itself is still atomic
}

AppendFile::AppendFile(const std::filesystem::path& file)
    : file_(file), descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw_errno("open", file_);
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view record) { write_all(descriptor_, record, file_); }

void AppendFile::sync() {
  if (::fsync(descriptor_) != 0) throw_errno("flush", file_);
}

}  // namespace spt
