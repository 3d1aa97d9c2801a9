#include <unistd.h>

#include <fstream>

#include "tests/fuzz/fuzz.h"

namespace spt::fuzz {

InputFile::InputFile(std::string_view bytes, std::string_view suffix)
    : path_(std::filesystem::temp_directory_path() / fmt::format("spt-fuzz-{}{}", ::getpid(), suffix)) {
  std::ofstream output(path_, std::ios::binary | std::ios::trunc);
  output.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  output.close();
  require(output.good(), "the temporary folder can be written");
}

InputFile::~InputFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace spt::fuzz
