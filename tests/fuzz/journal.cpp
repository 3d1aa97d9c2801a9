#include "results/journal.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  results::JournalLine line;
  if (!fuzz::accepted([&] { line = results::parse_line(fuzz::text(data, size), fuzz::kWhere); })) return 0;
  const std::string written = results::format_line(line);
  fuzz::require(results::format_line(results::parse_line(written, fuzz::kWhere)) == written, "what is written is what is read");
  return 0;
}
