#include "tasks/formats/png.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  constexpr int64_t kSide = 64;
  formats::Picture picture;
  if (!fuzz::accepted([&] { picture = formats::decode_grey_png(fuzz::text(data, size), kSide, fuzz::kWhere); })) return 0;
  fuzz::require(picture.height <= kSide && picture.width <= kSide && picture.channels == 1, "no larger than asked for");
  const formats::Picture again = formats::decode_grey_png(formats::encode_png(picture), kSide, fuzz::kWhere);
  fuzz::require(again.pixels == picture.pixels, "what is written is what is read");
  return 0;
}
