#include "tasks/formats/speech.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/archive.h"
#include "tasks/formats/speech_files.h"
#include "tasks/formats/wav.h"

namespace spt::formats {
namespace {

constexpr std::array<std::string_view, 2> kSpeechLists = {"validation_list.txt", "testing_list.txt"};

int64_t speech_word(const std::string& word, const std::string& where) {
  const auto found = std::find(kSpeechWords.begin(), kSpeechWords.end(), word);
  if (found == kSpeechWords.end()) throw DataError("{}: the folder '{}' is none of the 35 words of Speech Commands", where, word);
  return found - kSpeechWords.begin();
}

/// Lines of a list, each WORD/FILE.
std::set<std::string> list_lines(const std::string& content, const std::string& where) {
  constexpr size_t kLongestLine = 200;
  std::set<std::string> lines;
  size_t at = 0;
  for (int64_t number = 1; at < content.size(); ++number) {
    const size_t end = std::min(content.find('\n', at), content.size());
    std::string line = content.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    at = end + 1;
    if (line.empty()) continue;
    if (line.size() > kLongestLine || line.find('/') == std::string::npos || !line.ends_with(".wav"))
      throw DataError("{}, line {}: '{}' is not of the form WORD/FILE.wav", where, number, line.substr(0, 60));
    lines.insert(std::move(line));
  }
  return lines;
}

}  // namespace

const SpeechRelease& speech_release(std::string_view name) {
  static const std::vector<SpeechRelease> kReleases = [] {
    SpeechRelease old{.name = "v0.01",
                      .clips = {51'088, 6'798, 6'835},
                      .sha256 = "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d",
                      .words = {}};
    SpeechRelease now{.name = "v0.02",
                      .clips = {84'843, 9'981, 11'005},
                      .sha256 = "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
                      .words = {}};
    for (const std::string_view word : kSpeechWords) {
      now.words.emplace_back(word);
      if (std::find(kSpeechNewWords.begin(), kSpeechNewWords.end(), word) == kSpeechNewWords.end()) old.words.emplace_back(word);
    }
    return std::vector<SpeechRelease>{old, now};
  }();
  std::vector<std::string> known;
  for (const SpeechRelease& release : kReleases) {
    if (release.name == name) return release;
    known.push_back(release.name);
  }
  throw Error("{}", unknown_name("release of Speech Commands", name, known));
}

void SpeechCollector::add(const std::filesystem::path& path, const std::function<std::string()>& read) {
  const std::string file = path.filename().string(), folder = path.parent_path().filename().string();
  for (size_t k = 0; k < kSpeechLists.size(); ++k)
    if (file == kSpeechLists[k]) {
      const std::string content = read();
      digests_[file] = sha256(content);
      lists_[k] = list_lines(content, fmt::format("{}: {}", where_, file));
      return;
    }
  if (path.extension() != ".wav" || folder.starts_with("_")) return;
  const std::string name = folder + "/" + file;
  const std::string where = fmt::format("{}: {}", where_, name);
  const std::string bytes = read();
  SpeechClip clip{.name = name, .word = speech_word(folder, where), .split = 0, .samples = 0, .row = static_cast<int64_t>(clips_.size())};
  if (!digests_.try_emplace(name, sha256(bytes)).second) throw DataError("{}: stands twice", where);
  std::vector<int16_t> samples = read_wav(bytes, kSpeechRate, kSpeechSamples, where);
  clip.samples = static_cast<int64_t>(samples.size());
  samples.resize(static_cast<size_t>(kSpeechSamples));
  sink_(samples);
  clips_.push_back(std::move(clip));
}

SpeechIndex SpeechCollector::finish() {
  for (size_t k = 0; k < kSpeechLists.size(); ++k)
    if (!digests_.contains(std::string(kSpeechLists[k]))) throw DataError("{}: there is no {}", where_, kSpeechLists[k]);
  if (clips_.empty()) throw DataError("{}: there are no WORD/*.wav in it", where_);
  for (const std::string& name : lists_[0])
    if (lists_[1].contains(name)) throw DataError("{}: {} is in both lists", where_, name);
  for (SpeechClip& clip : clips_) clip.split = lists_[0].contains(clip.name) ? 1 : lists_[1].contains(clip.name) ? 2 : 0;
  std::sort(clips_.begin(), clips_.end(), [](const SpeechClip& a, const SpeechClip& b) { return a.name < b.name; });
  Sha256 all;
  for (const auto& [name, digest] : digests_) all.update(fmt::format("{} {}\n", digest, name));
  return {std::move(clips_), all.hex()};
}

SpeechIndex collect_speech(const std::filesystem::path& place, const SampleSink& sink) {
  SpeechCollector collector(fmt::format("'{}'", place.string()), sink);
  if (!std::filesystem::is_directory(place)) {
    constexpr ArchiveLimits kLimits = {.file_bytes = int64_t{1} << 24, .total_bytes = int64_t{1} << 33};
    visit_archive(place, kLimits, [&](std::string_view path, const std::function<std::string()>& read) {
      collector.add(std::filesystem::path(path), read);
    });
    SpeechIndex index = collector.finish();
    const std::string digest = sha256_file(place);
    for (const char* name : {"v0.01", "v0.02"})
      if (digest == speech_release(name).sha256) index.data_hash = digest;
    return index;
  }
  std::error_code problem;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place, problem))
    if (entry.is_regular_file() && !entry.is_symlink()) collector.add(entry.path(), [&] { return read_file(entry.path()); });
  if (problem) throw DataError("'{}': cannot be read ({})", place.string(), problem.message());
  return collector.finish();
}

SpeechData read_speech(const std::filesystem::path& place) {
  const auto memory = std::make_shared<std::vector<int16_t>>();
  SpeechIndex index =
      collect_speech(place, [&](std::span<const int16_t> samples) { memory->insert(memory->end(), samples.begin(), samples.end()); });
  return {std::move(index.clips), *memory, memory, std::move(index.data_hash)};
}

std::optional<std::filesystem::path> find_speech(const std::filesystem::path& data_root, std::string_view release) {
  const std::string name = "speech_commands_" + speech_release(release).name;
  for (const std::string& file :
       {name, name + ".tar.gz", name + ".tar", name + "_subset", name + "_subset.tar.xz", name + "_subset.tar.gz"})
    for (const char* folder : {"speech_commands", "speech", "SpeechCommands"})
      if (std::filesystem::exists(data_root / folder / file)) return data_root / folder / file;
  return std::nullopt;
}

std::string how_to_get_speech(const std::filesystem::path& data_root, std::string_view release) {
  const std::string name = "speech_commands_" + speech_release(release).name;
  return fmt::format(
      "put the archive {0}.tar.gz (https://storage.googleapis.com/download.tensorflow.org/data/{0}.tar.gz), or its content as the folder "
      "{0}, into '{1}'",
      name, (data_root / "speech_commands").string());
}

SpeechScaling::SpeechScaling(std::span<const std::span<const int16_t>> train, bool twice) : unit_(twice ? 0x1p-30f : 0x1p-15f) {
  if (train.size() < 2) throw Error("speech is standardised over the training clips, and there are {}", train.size());
  const size_t steps = train.front().size();
  const auto n = static_cast<double>(train.size());
  std::vector<int64_t> sums(steps), squares(steps);
  for (const std::span<const int16_t> clip : train) {
    SPT_CHECK(clip.size() == steps, "clips of {} and {} steps", steps, clip.size());
    for (size_t t = 0; t < steps; ++t) {
      sums[t] += clip[t];
      squares[t] += int64_t{clip[t]} * clip[t];
    }
  }
  for (size_t t = 0; t < steps; ++t) {
    const double mean = static_cast<double>(sums[t]) / n;
    const double variance = std::max(0.0, (static_cast<double>(squares[t]) - mean * static_cast<double>(sums[t])) / (n - 1));
    mean_.push_back(static_cast<float>(mean * unit_));
    scale_.push_back(static_cast<float>(std::sqrt(variance) * unit_) + 1e-5f);
  }
}

void SpeechScaling::write(std::span<const int16_t> clip, int64_t every, std::span<float> values) const {
  SPT_CHECK(clip.size() == mean_.size() && every > 0, "a clip of {} steps, every {}", clip.size(), every);
  const auto stride = static_cast<size_t>(every);
  SPT_CHECK(values.size() == (clip.size() + stride - 1) / stride, "room for {} values", values.size());
  for (size_t i = 0, t = 0; t < clip.size(); ++i, t += stride) values[i] = (static_cast<float>(clip[t]) * unit_ - mean_[t]) / scale_[t];
}

TreeData speech_tree() {
  const auto find = [](const std::filesystem::path& root) {
    auto found = find_speech(root, "v0.02");
    return found ? found : find_speech(root, "v0.01");
  };
  TreeData tree;
  tree.task = "speech";
  tree.title = "Speech Commands v0.02 (35 words) and v0.01 (30 words)";
  tree.source = "Warden 2018, arXiv:1804.03209";
  tree.licence = "CC BY 4.0";
  tree.size = "v0.02: 105,829 clips of 1 s, 2,428,923,189 bytes packed; v0.01: 64,721 clips, 1,489,096,277 bytes";
  tree.checksum = fmt::format("{} (v0.02), {} (v0.01)", speech_release("v0.02").sha256, speech_release("v0.01").sha256);
  tree.find = find;
  tree.how_to_get = [](const std::filesystem::path& root) { return how_to_get_speech(root, "v0.02"); };
  tree.verify = [](const std::filesystem::path& root) {
    const std::string release = find_speech(root, "v0.02") ? "v0.02" : "v0.01";
    const std::filesystem::path place = *find_speech(root, release);
    const SpeechIndex data = collect_speech(place, [](std::span<const int16_t>) {});  // the files, not a cache of them
    std::array<int64_t, 3> clips{};
    for (const SpeechClip& clip : data.clips) ++clips[static_cast<size_t>(clip.split)];
    const bool folder = std::filesystem::is_directory(place);
    const bool official = folder ? clips == speech_release(release).clips : data.data_hash == speech_release(release).sha256;
    return TreeData::Verdict{official,
                             fmt::format("{}: {} train, {} validation and {} test clips{}", release, clips[0], clips[1], clips[2],
                                         folder ? " (an unpacked folder: compared by these counts alone)" : ""),
                             data.data_hash};
  };
  return tree;
}

}  // namespace spt::formats
