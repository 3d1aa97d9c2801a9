#include "tasks/formats/compressed.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  constexpr int64_t kMost = 1 << 20;
  const std::string_view bytes = fuzz::text(data, size);
  std::string content;
  if (fuzz::accepted([&] { content = formats::unpack_gzip(bytes, kMost, fuzz::kWhere); }))
    fuzz::require(static_cast<int64_t>(content.size()) <= kMost, "no more is unpacked than is allowed");
  const fuzz::InputFile file(bytes, ".xz");
  if (fuzz::accepted([&] { content = formats::read_unpacked(file.path(), kMost); }, file.path().string()))
    fuzz::require(static_cast<int64_t>(content.size()) <= kMost, "no more is unpacked than is allowed");
  return 0;
}
