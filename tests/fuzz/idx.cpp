#include "tasks/formats/idx.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view bytes = fuzz::text(data, size);
  for (const int64_t dims : {1, 3}) {
    formats::IdxArray array;
    if (fuzz::accepted([&] { array = formats::parse_idx(bytes, dims, fuzz::kWhere); }))
      fuzz::require(formats::format_idx(array) == bytes, "what is read is what is written");
  }
  return 0;
}
