// The two lists of Speech Commands, with a line "--" between them.
#include "tasks/formats/speech_files.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view bytes = fuzz::text(data, size);
  const size_t middle = std::min(bytes.find("--\n"), bytes.size());
  formats::SpeechCollector collector(fuzz::kWhere, [](std::span<const int16_t>) {});
  formats::SpeechIndex index;
  const bool whole = fuzz::accepted([&] {
    collector.add("validation_list.txt", [&] { return std::string(bytes.substr(0, middle)); });
    collector.add("testing_list.txt", [&] { return std::string(bytes.substr(std::min(middle + 3, bytes.size()))); });
    index = collector.finish();
  });
  fuzz::require(!whole, "lists without a clip are refused");
  return 0;
}
