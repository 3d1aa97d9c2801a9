#include "tasks/formats/cifar.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view bytes = fuzz::text(data, size);
  formats::ImageSet images;
  if (fuzz::accepted([&] { images = formats::parse_cifar(bytes, fuzz::kWhere); }))
    fuzz::require(formats::format_cifar(images) == bytes, "what is read is what is written");
  return 0;
}
