#include "tasks/formats/bidmc.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  formats::BidmcTable table;
  if (fuzz::accepted([&] { table = formats::parse_bidmc_ts(fuzz::text(data, size), fuzz::kWhere); }))
    fuzz::require(static_cast<int64_t>(table.x.size()) == table.size() * formats::kBidmcWindow * formats::kBidmcChannels,
                  "a target a window");
  return 0;
}
