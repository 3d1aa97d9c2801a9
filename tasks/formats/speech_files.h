#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tasks/formats/speech.h"

namespace spt::formats {

/// Takes the samples of one clip, padded, in the order of SpeechClip::row.
using SampleSink = std::function<void(std::span<const int16_t>)>;

/// Everything about clips but their samples.
struct SpeechIndex {
  std::vector<SpeechClip> clips;
  std::string data_hash;
};

/// Takes files in any order, by their paths inside a folder or an archive.
class SpeechCollector {
 public:
  SpeechCollector(std::string where, SampleSink sink) : where_(std::move(where)), sink_(std::move(sink)) {}
  void add(const std::filesystem::path& path, const std::function<std::string()>& read);
  SpeechIndex finish();

 private:
  std::string where_;
  SampleSink sink_;
  std::vector<SpeechClip> clips_;
  std::map<std::string, std::string> digests_;
  std::array<std::set<std::string>, 2> lists_;
};

/// The files of a folder or an archive. Errors: as read_speech().
SpeechIndex collect_speech(const std::filesystem::path& place, const SampleSink& sink);

}  // namespace spt::formats
