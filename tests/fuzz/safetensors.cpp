#include "harness/base/safetensors.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  SafetensorsFile content;
  if (!fuzz::accepted([&] { content = parse_safetensors(fuzz::text(data, size), fuzz::kWhere); })) return 0;
  size_t bytes = 0;
  for (const auto& [name, tensor] : content.tensors) bytes += tensor.bytes.size();
  fuzz::require(bytes <= size, "no more data than there are");
  const SafetensorsFile again = parse_safetensors(format_safetensors(content), fuzz::kWhere);
  fuzz::require(again.tensors == content.tensors && again.metadata == content.metadata, "what is written is what is read");
  return 0;
}
