#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "harness/base/error.h"

/// One parser, fed with what anybody may have written; libFuzzer calls it, or replay.cpp does.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace spt::fuzz {

/// What parsers are told that the bytes come from; a message must name it.
inline const std::string kWhere = "'input'";

inline std::string_view text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

/// What must hold whatever the input is. Ends the process, which is what a fuzzer looks for.
inline void require(bool holds, std::string_view claim) {
  if (holds) return;
  std::cerr << "broken: " << claim << '\n';
  std::abort();
}

/// Whether `read` takes its input. It may refuse with an Error that names the place; another exception ends the process.
template <class Read>
bool accepted(Read&& read, std::string_view place = kWhere) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    require(std::string_view(error.what()).find(place) != std::string_view::npos,
            std::string("the message does not name the place: ") + error.what());
    return false;
  }
}

/// A file of the process's own with these bytes, for parsers that take a path.
class InputFile {
 public:
  explicit InputFile(std::string_view bytes, std::string_view suffix = "");
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace spt::fuzz
