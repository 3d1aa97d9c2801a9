#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/tree_data.h"

namespace spt::formats {

inline constexpr int64_t kSpeechRate = 16'000;     ///< Hz
inline constexpr int64_t kSpeechSamples = 16'000;  ///< of a clip: shorter ones are padded with zeros on the right

/// The classes of v0.02 in the published order; v0.01 has those of them that are not in kSpeechNewWords.
/// Source: arXiv:2310.02980 and its code.
inline constexpr std::array<std::string_view, 35> kSpeechWords = {
    "bed",    "cat",  "down", "five",   "forward", "go",       "house", "left",  "marvin", "no",     "on",   "right",
    "sheila", "tree", "up",   "visual", "yes",     "backward", "bird",  "dog",   "eight",  "follow", "four", "happy",
    "learn",  "nine", "off",  "one",    "seven",   "six",      "stop",  "three", "two",    "wow",    "zero"};
inline constexpr std::array<std::string_view, 5> kSpeechNewWords = {"backward", "follow", "forward", "learn", "visual"};

/// A release of Speech Commands, as published.
struct SpeechRelease {
  std::string name;                ///< v0.01 | v0.02
  std::array<int64_t, 3> clips;    ///< train, validation, test
  std::string sha256;              ///< of the archive speech_commands_NAME.tar.gz
  std::vector<std::string> words;  ///< in the order of the classes
};
const SpeechRelease& speech_release(std::string_view name);  ///< Errors: Error with the known names

struct SpeechClip {
  std::string name;     ///< WORD/SPEAKER_nohash_N.wav
  int64_t word = 0;     ///< counts kSpeechWords
  int64_t split = 0;    ///< 0 train, 1 validation, 2 test, by the lists
  int64_t samples = 0;  ///< before padding
  int64_t row = 0;      ///< in SpeechData::pcm
};

/// Clips in order of their names, and their samples.
struct SpeechData {
  std::vector<SpeechClip> clips;
  std::span<const int16_t> pcm;       ///< (rows, kSpeechSamples)
  std::shared_ptr<const void> owner;  ///< keeps `pcm` alive: memory, or a mapped file
  std::string data_hash;  ///< SHA-256 of the official archive if it was read from that, else over "<sha256> <name>\n" of wavs and lists
  std::span<const int16_t> clip(const SpeechClip& clip) const {
    return pcm.subspan(static_cast<size_t>(clip.row * kSpeechSamples), static_cast<size_t>(kSpeechSamples));
  }
};

/// Reads a folder or an archive (.tar, .gz, .xz): `WORD/*.wav` and the lists validation_list.txt and testing_list.txt; `_background_noise_`
/// is left out. What is in no list is train.
///
/// Errors: DataError naming file and offset or line: no lists, no clips, a folder that is no word, a file in both lists, what read_wav()
/// refuses.
SpeechData read_speech(const std::filesystem::path& place);

/// The data of a release below a data root, or a subset of them. Nothing if there is none.
std::optional<std::filesystem::path> find_speech(const std::filesystem::path& data_root, std::string_view release);
std::string how_to_get_speech(const std::filesystem::path& data_root, std::string_view release);

/// What find_speech() finds. Decoding 100,000 files takes minutes, so that their samples are kept in `<data root>/cache/` and mapped into
/// memory. `facts_only`: `pcm` stays empty where the cache is there.
///
/// The cache belongs to path, size and time of what was read; two processes may write it at once; what is read from it is checked by
/// SHA-256, and a damaged one is made again. Where it cannot be written the samples stay in memory. Errors: DataError saying what to do
/// when there is no data; as read_speech().
SpeechData load_speech(const std::filesystem::path& data_root, std::string_view release, bool facts_only = false);

/// (x_t - mean_t) / (std_t + 1e-5) of each time step t: float32 mean and unbiased std over the training clips, pads like samples.
/// x = pcm / 2^15, or with `twice`, as published, pcm / 2^30.
///
/// Errors: Error for fewer than two training clips.
/// Source: arXiv:2310.02980 and its code, "SC35 normalisation quirk"; must equal the reference case preprocess_speech.
class SpeechScaling {
 public:
  SpeechScaling(std::span<const std::span<const int16_t>> train, bool twice);
  /// Every `every`-th step, from the first, of a clip as long as the training clips; `values` has room for them.
  void write(std::span<const int16_t> clip, int64_t every, std::span<float> values) const;

 private:
  float unit_;
  std::vector<float> mean_, scale_;
};

/// What `spt-bench data` says about speech.
TreeData speech_tree();

}  // namespace spt::formats
