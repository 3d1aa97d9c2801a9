#include <algorithm>

#include "tasks/formats/pathfinder_files.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string content(fuzz::text(data, size));
  std::vector<formats::PathfinderSample> samples;
  if (!fuzz::accepted([&] {
        samples = formats::pathfinder_samples({{"0.npy", content}, {"10.npy", content}}, formats::kPathfinderLevel, fuzz::kWhere);
      }))
    return 0;
  for (const auto& sample : samples) {
    const std::filesystem::path file = std::filesystem::path("/set") / sample.file;
    fuzz::require(sample.label <= 1, "a label is 0 or 1");
    fuzz::require(file.lexically_normal().string().starts_with("/set/"), "a file lies inside the folder");
  }
  return 0;
}
