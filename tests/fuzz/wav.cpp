#include "tasks/formats/wav.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  constexpr int64_t kRate = 16'000, kMost = 16'000;
  std::vector<int16_t> samples;
  if (fuzz::accepted([&] { samples = formats::read_wav(fuzz::text(data, size), kRate, kMost, fuzz::kWhere); }))
    fuzz::require(static_cast<int64_t>(samples.size()) <= kMost && samples.size() * sizeof(int16_t) <= size, "no more samples than bytes");
  return 0;
}
