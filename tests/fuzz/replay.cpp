// Runs a fuzz target without libFuzzer: <program> CORPUS-FOLDER. Every file of the folder as it is, cut at many places, and with bytes
// changed at many places: so that the targets run with any compiler.
#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <vector>

#include "harness/base/file.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kPlaces = 300;  // of one file

void run(const std::string& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

void run_damaged(const std::string& bytes) {
  run(bytes);
  const size_t stride = std::max<size_t>(1, bytes.size() / kPlaces);
  for (size_t at = 0; at < bytes.size(); at += stride) {
    run(bytes.substr(0, at));
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      run(damaged);
    }
    run(bytes.substr(0, at) + bytes.substr(at / 2));
  }
}

/// A count that a file claims must not be believed: what no small input needs is not to be had. Sanitizers have a limit of their own.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  constexpr rlim_t kMost = rlim_t{1} << 30;
  const rlimit limit{kMost, kMost};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::cerr << "usage: " << argv[0] << " CORPUS-FOLDER\n";
    return 2;
  }
  limit_memory();
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.insert(entry.path());
  for (const std::filesystem::path& file : files) {
    std::cerr << file.filename().string() << std::endl;
    run_damaged(spt::read_file(file));
  }
  std::cerr << files.size() << " files\n";
  return files.empty() ? 1 : 0;
}
