#include "tasks/formats/bidmc.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view csv = fuzz::text(data, size);
  fuzz::accepted([&] { formats::parse_bidmc_signals(csv, fuzz::kWhere); });
  formats::BidmcRecordings recordings;
  formats::BidmcRecording& recording = recordings.recordings.emplace_back();
  if (!fuzz::accepted([&] { formats::parse_bidmc_numerics(csv, recording, fuzz::kWhere); })) return 0;
  for (const auto& target : recording.targets)
    fuzz::require(target.size() == recording.seconds.size(), "a value, or its absence, each second");
  recording.signal.resize(static_cast<size_t>(formats::kBidmcWindow * formats::kBidmcChannels));
  formats::bidmc_windows(recordings, formats::BidmcTarget::kHeartRate, formats::kBidmcStride);
  return 0;
}
