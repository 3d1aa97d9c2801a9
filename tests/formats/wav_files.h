#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/formats/image_files.h"

namespace spt::testing_files {

/// A WAV file: 16-bit PCM unless `bits` says otherwise.
inline std::string wav_bytes(const std::vector<int16_t>& samples, uint32_t rate = 16000, uint16_t channels = 1, uint16_t bits = 16) {
  const auto number = [](uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string data;
  for (const int16_t sample : samples) data += number(static_cast<uint16_t>(sample), 2);
  const uint16_t frame = static_cast<uint16_t>(channels * bits / 8);
  return "RIFF" + number(static_cast<uint32_t>(36 + data.size()), 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(channels, 2) +
         number(rate, 4) + number(rate * frame, 4) + number(frame, 2) + number(bits, 2) + "data" +
         number(static_cast<uint32_t>(data.size()), 4) + data;
}

/// A clip whose every sample is `value`, but for the first, which is `first`.
inline std::string flat_clip(int16_t value, int16_t first, size_t samples = 16000) {
  std::vector<int16_t> clip(samples, value);
  clip[0] = first;
  return wav_bytes(clip);
}

/// Speech Commands' layout with three words: 4 + 4 + 4 clips, of which validation and test have one of each word.
inline void write_speech(const TemporaryFolder& root, const std::string& folder = "speech_commands/speech_commands_v0.02") {
  const char* words[] = {"bed", "cat", "zero"};
  for (int16_t w = 0; w < 3; ++w)
    for (int16_t i = 0; i < 4; ++i)
      root.write(fmt::format("{}/{}/{}_nohash_0.wav", folder, words[w], i),
                 flat_clip(static_cast<int16_t>(100 * w + i), static_cast<int16_t>(-i), i == 1 ? 9558 : 16000));
  root.write(folder + "/_background_noise_/pink.wav", "not a clip");
  root.write(folder + "/validation_list.txt", "bed/2_nohash_0.wav\ncat/2_nohash_0.wav\r\nzero/2_nohash_0.wav\n");
  root.write(folder + "/testing_list.txt", "bed/3_nohash_0.wav\ncat/3_nohash_0.wav\nzero/3_nohash_0.wav\nzero/absent_nohash_0.wav\n");
  root.write(folder + "/LICENSE", "CC BY 4.0");
}

}  // namespace spt::testing_files
