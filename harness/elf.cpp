#include <elf.h>

#include <bit>
#include <cstring>
#include <fstream>

#include "harness/base/error.h"
#include "harness/worker_client.h"

namespace spt {
namespace {

/// Reads parts of a file; a part that is not there is an Error.
class PartReader {
 public:
  explicit PartReader(const std::filesystem::path& file) : file_(file), in_(file, std::ios::binary) {
    if (!in_) throw Error("cannot read '{}': {}", file.string(), std::strerror(errno));
  }
  void read(uint64_t at, void* target, size_t size) {
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(at));
    if (!in_.read(static_cast<char*>(target), static_cast<std::streamsize>(size)))
      throw Error("'{}' is no whole ELF program", file_.string());
  }

 private:
  std::filesystem::path file_;
  std::ifstream in_;
};

uint64_t aligned(uint64_t size) { return (size + 3) & ~uint64_t{3}; }

// The build id among the notes of one segment, "" if it is not there.
std::string build_id_in(PartReader& reader, uint64_t at, uint64_t size) {
  const uint64_t end = at + size;
  while (at + sizeof(Elf64_Nhdr) <= end) {
    Elf64_Nhdr note;
    reader.read(at, &note, sizeof note);
    const uint64_t name = at + sizeof note, content = name + aligned(note.n_namesz);
    if (content + note.n_descsz > end) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= 64) {
      char owner[4];
      reader.read(name, owner, sizeof owner);
      std::string bytes(note.n_descsz, '\0'), hex;
      reader.read(content, bytes.data(), bytes.size());
      for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
      if (std::memcmp(owner, "GNU", 4) == 0) return hex;
    }
    at = content + aligned(note.n_descsz);
  }
  return "";
}

}  // namespace

std::string elf_build_id(const std::filesystem::path& file) {
  static_assert(std::endian::native == std::endian::little);
  PartReader reader(file);
  Elf64_Ehdr header;
  reader.read(0, &header, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    throw Error("'{}' is no 64-bit ELF program", file.string());
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    reader.read(header.e_phoff + static_cast<uint64_t>(i) * sizeof segment, &segment, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    const std::string id = build_id_in(reader, segment.p_offset, segment.p_filesz);
    if (!id.empty()) return id;
  }
  throw Error("'{}' has no build id (it is linked with -Wl,--build-id)", file.string());
}

}  // namespace spt
