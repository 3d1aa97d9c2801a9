#include "tasks/formats/wav.h"

#include <sndfile.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

/// Bytes in memory as libsndfile reads a file.
struct WavBytes {
  std::string_view bytes;
  sf_count_t at = 0;

  static sf_count_t length(void* self) { return static_cast<sf_count_t>(static_cast<WavBytes*>(self)->bytes.size()); }
  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    auto* file = static_cast<WavBytes*>(self);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file->at : length(self);
    return file->at = std::clamp<sf_count_t>(offset, -base, length(self) - base) + base;  // a sum of both could overflow
  }
  static sf_count_t read(void* target, sf_count_t count, void* self) {
    auto* file = static_cast<WavBytes*>(self);
    const sf_count_t n = std::min(count, length(self) - file->at);
    std::memcpy(target, file->bytes.data() + file->at, static_cast<size_t>(n));
    file->at += n;
    return n;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* self) { return static_cast<WavBytes*>(self)->at; }
};

/// libsndfile reads what is there of a file that was cut; the header knows better.
void check_riff_size(std::string_view bytes, std::string_view where) {
  constexpr size_t kHeaderBytes = 44;
  if (bytes.size() < kHeaderBytes) throw DataError("{}: ends at byte {}, inside the header of a WAV file", where, bytes.size());
  if (!bytes.starts_with("RIFF") || bytes.substr(8, 4) != "WAVE") throw DataError("{}: byte 0: not a WAV file", where);
  uint64_t riff = 8;
  for (size_t i = 0; i < 4; ++i) riff += static_cast<uint64_t>(static_cast<unsigned char>(bytes[4 + i])) << (8 * i);
  if (riff > bytes.size()) throw DataError("{}: truncated at byte {}; its header says {}", where, bytes.size(), riff);
}

}  // namespace

std::vector<int16_t> read_wav(std::string_view bytes, int64_t sample_rate, int64_t max_samples, std::string_view where) {
  check_riff_size(bytes, where);
  WavBytes source{bytes};
  SF_VIRTUAL_IO io = {WavBytes::length, WavBytes::seek, WavBytes::read, WavBytes::write, WavBytes::tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open_virtual(&io, SFM_READ, &info, &source), sf_close);
  if (!file) throw DataError("{}: no WAV file that can be read: {}", where, sf_strerror(nullptr));
  if (info.samplerate != sample_rate) throw DataError("{}: {} Hz instead of {}", where, info.samplerate, sample_rate);
  if (info.channels != 1) throw DataError("{}: {} channels instead of 1", where, info.channels);
  if ((info.format & SF_FORMAT_SUBMASK) != SF_FORMAT_PCM_16) throw DataError("{}: samples are not 16-bit PCM", where);
  if (info.frames < 0 || info.frames > max_samples) throw DataError("{}: {} samples, more than {}", where, info.frames, max_samples);
  std::vector<int16_t> samples(static_cast<size_t>(info.frames));
  const sf_count_t n = sf_readf_short(file.get(), samples.data(), info.frames);
  if (n != info.frames) throw DataError("{}: {} of {} samples can be read: {}", where, n, info.frames, sf_strerror(file.get()));
  return samples;
}

}  // namespace spt::formats
