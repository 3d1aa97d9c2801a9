#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spt::formats {

/// Samples of a WAV file in memory: one channel of 16-bit PCM at `sample_rate` Hz, at most `max_samples` of them. Decoded by libsndfile.
///
/// Errors: DataError beginning with `where` for bytes that are no WAV file or end before its header says (with the offset), another rate,
/// number of channels or sample format, and more samples.
std::vector<int16_t> read_wav(std::string_view bytes, int64_t sample_rate, int64_t max_samples, std::string_view where);

}  // namespace spt::formats
