// Content of the caches, as if its seal were right.
#include "harness/base/safetensors.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/cache_content.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view bytes = fuzz::text(data, size);
  SafetensorsFile content;
  if (!fuzz::accepted([&] { content = parse_safetensors(bytes, fuzz::kWhere); })) return 0;
  // The place is added by whoever opens the cache, so that any message will do.
  fuzz::accepted([&] { formats::imdb_from_cache(content); }, "cache");
  formats::BidmcRecordings recordings;
  if (fuzz::accepted([&] { recordings = formats::bidmc_from_cache(content); }, "cache"))
    for (const auto target : {formats::BidmcTarget::kHeartRate, formats::BidmcTarget::kSpO2})
      formats::bidmc_windows(recordings, target, formats::kBidmcStride);
  std::vector<formats::SpeechClip> clips;
  if (fuzz::accepted([&] { clips = formats::speech_clips_from_cache(content); }, "cache"))
    for (const formats::SpeechClip& clip : clips) formats::kSpeechWords.at(static_cast<size_t>(clip.word));
  return 0;
}
