#include "tasks/formats/npy.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  formats::NpyArray array;
  if (!fuzz::accepted([&] { array = formats::parse_npy(fuzz::text(data, size), fuzz::kWhere); })) return 0;
  size_t count = 1;
  for (const int64_t n : array.shape) count *= static_cast<size_t>(n);
  fuzz::require(count == array.values.size(), "as many values as the shape says");
  return 0;
}
