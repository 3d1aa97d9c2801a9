#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/safetensors.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/imdb.h"
#include "tasks/formats/speech.h"

namespace spt::formats {

template <class T>
inline constexpr const char* kCacheType = nullptr;
template <>
inline constexpr const char* kCacheType<float> = "F32";
template <>
inline constexpr const char* kCacheType<int64_t> = "I64";
template <>
inline constexpr const char* kCacheType<char> = "U8";

template <class T>
RawTensor cache_column(const std::vector<T>& values) {
  return {kCacheType<T>,
          {static_cast<int64_t>(values.size())},
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}
inline RawTensor cache_column(std::string text) {
  const auto bytes = static_cast<int64_t>(text.size());
  return {kCacheType<char>, {bytes}, std::move(text)};
}

/// Bytes of a column. Errors: Error if it is not there, or has another type.
const std::string& cache_bytes(const SafetensorsFile& file, const std::string& name, const std::string& dtype);

template <class T>
std::vector<T> cache_values(const SafetensorsFile& file, const std::string& name) {
  const std::string& bytes = cache_bytes(file, name, kCacheType<T>);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
/// ... of which there must be `n`.
template <class T>
std::vector<T> cache_values(const SafetensorsFile& file, const std::string& name, size_t n) {
  std::vector<T> values = cache_values<T>(file, name);
  if (values.size() != n) throw Error("the cache's column '{}' has {} values instead of {}", name, values.size(), n);
  return values;
}

/// Metadata of a cache. Errors: Error if they are not there.
const std::string& cache_field(const SafetensorsFile& file, const std::string& name);

/// What caches hold, and back. Errors of reading: Error for a column that is missing or of another type or length, or holds what cannot be.
SafetensorsFile imdb_as_cache(const ImdbData& data);
ImdbData imdb_from_cache(const SafetensorsFile& file);
SafetensorsFile bidmc_as_cache(const BidmcRecordings& data);
BidmcRecordings bidmc_from_cache(const SafetensorsFile& file);
SafetensorsFile speech_clips_as_cache(const std::vector<SpeechClip>& clips);
std::vector<SpeechClip> speech_clips_from_cache(const SafetensorsFile& file);

}  // namespace spt::formats
