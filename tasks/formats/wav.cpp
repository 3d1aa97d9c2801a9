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

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::string little_endian(uint32_t value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

/// The same file with the two chunks that hold the sound alone, once every chunk is seen to lie inside the file: libsndfile reads what is
/// there of a file that was cut, and searches a damaged list of remarks for minutes.
std::string sound_chunks(std::string_view bytes, std::string_view where) {
  constexpr size_t kRiffBytes = 12, kChunkBytes = 8, kHeaderBytes = 44;
  if (bytes.size() < kHeaderBytes) throw DataError("{}: ends at byte {}, inside the header of a WAV file", where, bytes.size());
  if (!bytes.starts_with("RIFF") || bytes.substr(8, 4) != "WAVE") throw DataError("{}: byte 0: not a WAV file", where);
  const uint64_t riff = uint64_t{kChunkBytes} + little_endian(bytes, 4);
  if (riff > bytes.size()) throw DataError("{}: truncated at byte {}; its header says {}", where, bytes.size(), riff);
  bytes = bytes.substr(0, riff);
  std::string_view format, data;
  for (size_t at = kRiffBytes; at + kChunkBytes <= bytes.size();) {
    const uint64_t size = little_endian(bytes, at + 4);
    if (size > bytes.size() - at - kChunkBytes)
      throw DataError("{}: byte {}: a chunk of {} bytes, more than the {} that follow", where, at, size, bytes.size() - at - kChunkBytes);
    const std::string_view chunk = bytes.substr(at, kChunkBytes + size);
    if (std::string_view& wanted = chunk.starts_with("fmt ") ? format : data;
        wanted.empty() && (chunk.starts_with("fmt ") || chunk.starts_with("data")))
      wanted = chunk;
    at += kChunkBytes + size + size % 2;
  }
  if (format.empty() || data.empty()) throw DataError("{}: there is no chunk '{}'", where, format.empty() ? "fmt " : "data");
  const std::string pad(format.size() % 2, '\0');
  const std::string body = "WAVE" + std::string(format) + pad + std::string(data);
  return "RIFF" + little_endian(static_cast<uint32_t>(body.size())) + body;
}

}  // namespace

std::vector<int16_t> read_wav(std::string_view bytes, int64_t sample_rate, int64_t max_samples, std::string_view where) {
  const std::string sound = sound_chunks(bytes, where);
  WavBytes source{sound};
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
