#include <unistd.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/cache_content.h"
#include "tasks/formats/cache_folder.h"
#include "tasks/formats/mapped_file.h"
#include "tasks/formats/speech.h"
#include "tasks/formats/speech_files.h"

namespace spt::formats {
namespace {

std::vector<int64_t> speech_column(const std::vector<SpeechClip>& clips, int64_t SpeechClip::* field) {
  std::vector<int64_t> column;
  for (const SpeechClip& clip : clips) column.push_back(clip.*field);
  return column;
}

/// Path, size and time of everything that is read: other stamps, another cache.
std::string speech_stamp(const std::filesystem::path& place) {
  std::map<std::string, std::string> stamps;
  const auto add = [&](const std::filesystem::path& file) {
    stamps[file.string()] =
        fmt::format("{} {}", std::filesystem::file_size(file), std::filesystem::last_write_time(file).time_since_epoch().count());
  };
  if (std::filesystem::is_directory(place)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place))
      if (entry.is_regular_file()) add(entry.path());
  } else {
    add(place);
  }
  Sha256 hash;
  for (const auto& [name, stamp] : stamps) hash.update(fmt::format("{} {}\n", name, stamp));
  return hash.hex();
}

struct SpeechCacheFiles {
  std::filesystem::path index, samples;
};

SpeechCacheFiles speech_cache_files(const std::filesystem::path& data_root, const std::string& stamp) {
  const std::string name = "speech-" + stamp.substr(0, 16);
  return {data_root / "cache" / (name + ".safetensors"), data_root / "cache" / (name + ".pcm")};
}

/// Over all that facts are made of.
std::string speech_index_hash(const SafetensorsFile& index) {
  Sha256 hash;
  hash_tensors(hash, index);
  hash.update(cache_field(index, "data_hash") + cache_field(index, "samples_sha256"));
  return hash.hex();
}

std::optional<SpeechData> read_speech_cache(const SpeechCacheFiles& files, bool facts_only) {
  if (!std::filesystem::exists(files.samples)) return std::nullopt;
  return read_cache(files.index, [&] {
    const SafetensorsFile index = read_safetensors(files.index);
    if (speech_index_hash(index) != cache_field(index, "index_sha256")) throw Error("its content is not what was written");
    SpeechData data{speech_clips_from_cache(index), {}, nullptr, cache_field(index, "data_hash")};
    if (facts_only) return data;
    const auto mapped = std::make_shared<const MappedFile>(files.samples);
    if (sha256(mapped->bytes()) != cache_field(index, "samples_sha256"))
      throw Error("'{}': its content is not what was written", files.samples.string());
    if (mapped->bytes().size() != data.clips.size() * kSpeechSamples * sizeof(int16_t))
      throw Error("'{}': {} bytes for {} clips", files.samples.string(), mapped->bytes().size(), data.clips.size());
    data.pcm = mapped->as<int16_t>();
    data.owner = mapped;
    return data;
  });
}

/// Decodes into a file of its own, which takes its place when it is whole; the index comes last.
void write_speech_cache(const SpeechCacheFiles& files, const std::filesystem::path& place) {
  const std::filesystem::path temporary = fmt::format("{}.{}", files.samples.string(), ::getpid());
  struct Remover {
    std::filesystem::path file;
    ~Remover() {
      std::error_code ignored;
      std::filesystem::remove(file, ignored);
    }
  };
  const Remover remover{temporary};
  Sha256 hash;
  std::ofstream output(temporary, std::ios::binary);
  SpeechIndex index = collect_speech(place, [&](std::span<const int16_t> samples) {
    const std::string_view bytes(reinterpret_cast<const char*>(samples.data()), samples.size_bytes());
    hash.update(bytes);
    output.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
  output.close();
  if (!output) throw Error("cannot write '{}': is the disk full?", temporary.string());
  SafetensorsFile content = speech_clips_as_cache(index.clips);
  content.metadata = {{"data_hash", index.data_hash}, {"samples_sha256", hash.hex()}};
  content.metadata["index_sha256"] = speech_index_hash(content);
  std::filesystem::rename(temporary, files.samples);
  write_safetensors(files.index, content);
}

}  // namespace

SafetensorsFile speech_clips_as_cache(const std::vector<SpeechClip>& clips) {
  SafetensorsFile content;
  std::string names;
  for (const SpeechClip& clip : clips) names += clip.name + "\n";
  content.tensors["name"] = cache_column(std::move(names));
  content.tensors["word"] = cache_column(speech_column(clips, &SpeechClip::word));
  content.tensors["split"] = cache_column(speech_column(clips, &SpeechClip::split));
  content.tensors["samples"] = cache_column(speech_column(clips, &SpeechClip::samples));
  content.tensors["row"] = cache_column(speech_column(clips, &SpeechClip::row));
  return content;
}

std::vector<SpeechClip> speech_clips_from_cache(const SafetensorsFile& file) {
  const std::string& names = cache_bytes(file, "name", "U8");
  std::vector<SpeechClip> clips;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find('\n', at), names.size());
    clips.push_back({.name = names.substr(at, end - at)});
    at = end + 1;
  }
  const auto read = [&](const char* name, int64_t SpeechClip::* field, int64_t below) {
    const auto values = cache_values<int64_t>(file, name, clips.size());
    for (size_t i = 0; i < clips.size(); ++i) {
      if (values[i] < 0 || values[i] >= below) throw Error("the cache's clip {} has {} = {}", i, name, values[i]);
      clips[i].*field = values[i];
    }
  };
  read("word", &SpeechClip::word, static_cast<int64_t>(kSpeechWords.size()));
  read("split", &SpeechClip::split, 3);
  read("samples", &SpeechClip::samples, kSpeechSamples + 1);
  read("row", &SpeechClip::row, static_cast<int64_t>(clips.size()));
  return clips;
}

SpeechData load_speech(const std::filesystem::path& data_root, std::string_view release, bool facts_only) {
  const auto place = find_speech(data_root, release);
  if (!place)
    throw DataError("there are no clips of Speech Commands {} below '{}'; {}", release, data_root.string(),
                    how_to_get_speech(data_root, release));
  const SpeechCacheFiles files = speech_cache_files(data_root, speech_stamp(*place));
  if (auto data = read_speech_cache(files, facts_only)) return std::move(*data);
  if (!writable_cache(data_root)) {
    spdlog::info("no cache of the speech clips is kept: '{}' cannot be written", files.index.parent_path().string());
    return read_speech(*place);
  }
  write_speech_cache(files, *place);
  auto data = read_speech_cache(files, facts_only);
  if (!data) throw DataError("'{}' cannot be read back after it was written", files.index.string());
  return std::move(*data);
}

}  // namespace spt::formats
