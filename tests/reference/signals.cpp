#include <torch/torch.h>

#include <cstdlib>

#include "harness/base/file.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/speech.h"
#include "tasks/formats/wav.h"
#include "tests/reference/handlers.h"

// Handlers of preprocessing of signals: what tasks/formats does, without LibTorch.
namespace spt::reference {
namespace {

constexpr const char* kClipSplits[] = {"train", "val", "test"};
using Clips = std::vector<std::vector<int16_t>>;

std::vector<std::span<const int16_t>> views(const Clips& clips) { return {clips.begin(), clips.end()}; }

at::Tensor scaled_clips(const formats::SpeechScaling& scaling, const Clips& clips) {
  std::vector<at::Tensor> rows;
  for (const std::vector<int16_t>& clip : clips) {
    at::Tensor row = torch::empty({static_cast<int64_t>(clip.size())}, torch::kFloat32);
    scaling.write(clip, 1, {row.data_ptr<float>(), clip.size()});
    rows.push_back(row);
  }
  return torch::stack(rows);
}

/// The samples of input.<split> at the steps that the case holds.
Clips stored_samples(Case& c, const char* split) {
  const at::Tensor samples = c.input(split).to(torch::kInt16).contiguous();
  Clips clips;
  for (int64_t i = 0; i < samples.size(0); ++i) {
    const int16_t* row = samples.const_data_ptr<int16_t>() + i * samples.size(1);
    clips.emplace_back(row, row + samples.size(1));
  }
  return clips;
}

std::vector<std::string> clip_files(const Case& c, const char* split) {
  if (!c.json().contains("files")) throw Error("{}: case.json has no 'files'", c.name());
  return c.json().at("files").at(split).get<std::vector<std::string>>();
}

/// Whole clips: those beside the case, else those of the case of this repository, else the data below SPT_DATA.
/// Errors: Error for a clip that is in none of them.
Clips whole_clips(const Case& c, const char* split, int64_t length) {
  static const std::optional<formats::SpeechData> kData = []() -> std::optional<formats::SpeechData> {
    const char* root = std::getenv("SPT_DATA");
    const auto place = root == nullptr ? std::nullopt : formats::find_speech(root, "v0.01");
    return place ? std::optional(formats::read_speech(*place)) : std::nullopt;
  }();
  Clips clips;
  for (const std::string& name : clip_files(c, split)) {
    std::filesystem::path file = c.folder() / "wav" / name;
    if (!std::filesystem::exists(file)) file = std::filesystem::path(SPT_REFERENCE_CASES) / "preprocess_speech" / "wav" / name;
    if (std::filesystem::exists(file)) {
      clips.push_back(formats::read_wav(read_file(file), formats::kSpeechRate, length, file.string()));
      clips.back().resize(static_cast<size_t>(length));
      continue;
    }
    static const std::vector<formats::SpeechClip> kNone;
    const auto& known = kData ? kData->clips : kNone;
    const auto found = std::find_if(known.begin(), known.end(), [&](const formats::SpeechClip& clip) { return clip.name == name; });
    if (found == known.end())
      throw Error(
          "{}: the sums are over whole clips, and wav/{} is neither beside the case nor in Speech Commands v0.01 below SPT_DATA ({})",
          c.name(), name, kData ? "which has other clips" : "which is not set or has no clips");
    const auto samples = kData->clip(*found);
    clips.emplace_back(samples.begin(), samples.end());
  }
  return clips;
}

/// Whole clips agree with the stored samples, and their scaled values add up to <split>_sum.
void compare_clip_sums(Case& c, int64_t length, const at::Tensor& steps) {
  std::array<Clips, 3> clips;
  for (size_t k = 0; k < clips.size(); ++k) clips[k] = whole_clips(c, kClipSplits[k], length);
  const formats::SpeechScaling scaling(views(clips[0]), true);
  for (size_t k = 0; k < clips.size(); ++k) {
    const at::Tensor values = scaled_clips(scaling, clips[k]);
    c.compare_output(std::string(kClipSplits[k]) + "_sum", values.to(torch::kFloat64).sum(1));
    c.compare(std::string(kClipSplits[k]) + " at the steps", values.index_select(1, steps),
              c.tensor(std::string("output.") + kClipSplits[k]), c.tolerance("output"));
  }
}

}  // namespace

void speech_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto words = options.get<std::vector<std::string>>("words");
  const auto length = options.get<int64_t>("length");
  options.finish();
  const at::Tensor steps = c.input("steps");
  const Clips train = stored_samples(c, "train");
  const formats::SpeechScaling published(views(train), true), fair(views(train), false);
  for (const char* split : kClipSplits) {
    const Clips clips = split == std::string("train") ? train : stored_samples(c, split);
    c.compare_output(split, scaled_clips(published, clips));
    c.compare_output(std::string(split) + "_fair", scaled_clips(fair, clips));
    std::vector<int64_t> labels;
    for (const std::string& file : clip_files(c, split)) {
      const auto word = std::find(words.begin(), words.end(), file.substr(0, file.find('/')));
      if (word == words.end()) throw Error("{}: '{}' is none of options.words", c.name(), file);
      labels.push_back(word - words.begin());
    }
    c.compare_output(std::string(split) + "_labels", torch::tensor(labels, torch::kInt64));
  }
  compare_clip_sums(c, length, steps);
}

void bidmc_targets_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto rescale = options.get<bool>("rescale_targets");
  options.finish();
  const auto numbers = [](const at::Tensor& t) {
    const at::Tensor flat = t.to(torch::kFloat64).contiguous();
    return std::vector<double>(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
  };
  const std::vector<double> train = numbers(c.input("train"));
  std::optional<formats::TargetScaling> scaling;
  if (rescale) scaling.emplace(train);
  for (const char* split : kClipSplits) {
    std::vector<double> values = split == std::string("train") ? train : numbers(c.input(split));
    for (double& value : values)
      if (scaling) value = (*scaling)(value);
    c.compare_output(split, torch::tensor(values, torch::kFloat64));
  }
}

}  // namespace spt::reference
