#include "tasks/formats/speech.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "harness/base/error.h"
#include "tasks/formats/split.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/token_dataset.h"
#include "tasks/z_score.h"

namespace spt::tasks {
namespace {

using formats::SpeechClip;
using formats::SpeechData;

struct SpeechOptions {
  std::string release = "v0.02";
  std::string words;
  std::string scaling = "once";
  int64_t resolution = 1;
  int64_t train_examples = 0;
  int64_t validation_examples = 0;
  int64_t test_examples = 0;
  int64_t split_seed = 42;
  bool partial = false;
  bool z_score = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("release", self.release, {.effect = "of Speech Commands: v0.02 has 35 words, v0.01 has 30", .choices = {"v0.01", "v0.02"}});
    visit("words", self.words, {.effect = "the classes in their order, with spaces between; empty: all words of the release"});
    visit("scaling", self.scaling,
          {.effect = "samples divided by 2^15 once, or twice as published; then each time step is standardised over the train clips",
           .choices = {"once", "twice"}});
    visit("resolution", self.resolution,
          {.effect = "k: every k-th sample after standardising, as published (no filter)", .min = 1, .max = 8000});
    visit("train_examples", self.train_examples, {.effect = "a subset of clips, nested; 0: all", .min = 0});
    visit("validation_examples", self.validation_examples, {.effect = "a subset by split_seed, stratified; 0: all", .min = 0});
    visit("test_examples", self.test_examples, {.effect = "a subset by split_seed, stratified; 0: all", .min = 0, .stage = "supervised"});
    visit("split_seed", self.split_seed, {.effect = "which clips those subsets have; the splits are the official lists'", .min = 0});
    visit("partial", self.partial, {.effect = "take clips that are not the whole official set"});
    visit("z_score", self.z_score, z_score_info());
    SubsetOptions::visit(self.subset, visit);
  }

  /// Errors: Error for a word that the release does not have or that stands twice, or fewer than two.
  std::vector<std::string> classes() const {
    const std::vector<std::string>& known = formats::speech_release(release).words;
    std::istringstream text(words);
    std::vector<std::string> chosen;
    for (std::string word; text >> word;) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        throw Error("task speech: {}", unknown_name("word of " + release, word, known));
      if (std::find(chosen.begin(), chosen.end(), word) != chosen.end())
        throw Error("task speech: the word '{}' stands twice in words", word);
      chosen.push_back(word);
    }
    if (chosen.size() == 1) throw Error("task speech: words = \"{}\" is one class; two are the least", words);
    return chosen.empty() ? known : chosen;
  }
};

SpeechOptions read_speech_options(const OptionMap& given) {
  const auto options = read_options<SpeechOptions>(given, "task speech");
  options.classes();
  return options;
}

/// The clips of the chosen words, split by split, with their classes.
struct ChosenClips {
  std::array<std::vector<const SpeechClip*>, 3> clips;  // train, validation, test
  std::array<std::vector<uint8_t>, 3> labels;

  SplitSizes sizes() const {
    return {static_cast<int64_t>(clips[0].size()), static_cast<int64_t>(clips[1].size()), static_cast<int64_t>(clips[2].size())};
  }
};

ChosenClips chosen_clips(const SpeechOptions& options, const SpeechData& data) {
  const std::vector<std::string> classes = options.classes();
  ChosenClips chosen;
  for (const SpeechClip& clip : data.clips) {
    const auto label = std::find(classes.begin(), classes.end(), formats::kSpeechWords.at(static_cast<size_t>(clip.word)));
    if (label == classes.end()) continue;
    chosen.clips.at(static_cast<size_t>(clip.split)).push_back(&clip);
    chosen.labels.at(static_cast<size_t>(clip.split)).push_back(static_cast<uint8_t>(label - classes.begin()));
  }
  return chosen;
}

std::array<int64_t, 3> clip_counts(const SpeechData& data) {
  std::array<int64_t, 3> counts{};
  for (const SpeechClip& clip : data.clips) ++counts.at(static_cast<size_t>(clip.split));
  return counts;
}

SpeechData load_speech_task(const SpeechOptions& options, const std::filesystem::path& data_root, bool facts_only) {
  SpeechData data = formats::load_speech(data_root, options.release, facts_only);
  const std::array<int64_t, 3> there = clip_counts(data), official = formats::speech_release(options.release).clips;
  if (there != official && !options.partial)
    throw DataError(
        "the clips below '{}' are {} train, {} validation and {} test, not the {}, {} and {} of Speech Commands {}; partial = true takes "
        "them as "
        "they are",
        data_root.string(), there[0], there[1], there[2], official[0], official[1], official[2], options.release);
  return data;
}

/// `there`: clips of the chosen words. Errors: Error where there are not so many.
TaskFacts speech_facts(const SpeechOptions& options, const SplitSizes& there, const std::string& data_hash) {
  for (size_t k = 0; k < there.size(); ++k)
    if (there[k] == 0) throw DataError("task speech: there are no {} clips of these words", split_name(static_cast<Split>(k)));
  const SplitSizes sizes =
      examples_asked({options.train_examples, options.validation_examples, options.test_examples}, there, "task speech", options.subset);
  TaskFacts facts;
  facts.channels = 1;
  facts.max_length = (formats::kSpeechSamples + options.resolution - 1) / options.resolution;
  facts.train_lengths = {{facts.max_length, sizes[0]}};
  facts.outputs = static_cast<int64_t>(options.classes().size());
  facts.mask_ratio = 0.25;
  facts.metrics = {{"accuracy", "", true}};
  facts.train_size = sizes[0];
  facts.validation_size = sizes[1];
  facts.test_size = sizes[2];
  facts.data_hash = data_hash;
  facts.data_source = fmt::format("Speech Commands {} (Warden 2018), raw 16 kHz audio", options.release);
  facts.partial = options.partial;
  return facts;
}

TaskFacts facts_of_speech(const OptionMap& given, const std::filesystem::path& data_root) {
  const SpeechOptions options = read_speech_options(given);
  const formats::SpeechRelease& release = formats::speech_release(options.release);
  // Without data a matrix over the whole set can be planned all the same: what the worker opens then must be the official archive.
  if (!formats::find_speech(data_root, options.release) && !options.partial && options.classes() == release.words)
    return speech_facts(options, release.clips, release.sha256);
  const SpeechData data = load_speech_task(options, data_root, true);
  const ChosenClips chosen = chosen_clips(options, data);
  return speech_facts(options, chosen.sizes(), data.data_hash);
}

/// Some clips as sequences of (L, 1).
class SpeechDataset : public Dataset {
 public:
  struct Shared {
    SpeechData data;
    std::unique_ptr<const formats::SpeechScaling> scaling;
    ChosenClips chosen;
    int64_t resolution = 1;
    int64_t length = 0;
  };
  SpeechDataset(std::shared_ptr<const Shared> shared, size_t split, std::vector<int64_t> order, int64_t first_id)
      : shared_(std::move(shared)), split_(split), order_(std::move(order)), first_id_(first_id) {}

  int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  int64_t length(int64_t) const override { return shared_->length; }
  int64_t label(int64_t index) const override { return shared_->chosen.labels[split_][member(index)]; }

  Batch batch(std::span<const int64_t> indices) const override {
    const auto n = static_cast<int64_t>(indices.size());
    const auto steps = static_cast<size_t>(shared_->length);
    Batch batch;
    batch.values = torch::empty({n, shared_->length, 1}, torch::kFloat32);
    batch.lengths = torch::full({n}, shared_->length, torch::kInt64);
    batch.labels = torch::empty({n}, torch::kInt64);
    batch.example_ids = torch::empty({n}, torch::kInt64);
    auto* values = batch.values.data_ptr<float>();
    for (size_t b = 0; b < indices.size(); ++b) {
      const size_t i = member(indices[b]);
      shared_->scaling->write(shared_->data.clip(*shared_->chosen.clips[split_][i]), shared_->resolution, {values + b * steps, steps});
      batch.labels.data_ptr<int64_t>()[b] = shared_->chosen.labels[split_][i];
      batch.example_ids.data_ptr<int64_t>()[b] = first_id_ + static_cast<int64_t>(i);
    }
    return batch;
  }

 private:
  size_t member(int64_t index) const {
    SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
    return static_cast<size_t>(order_[static_cast<size_t>(index)]);
  }
  std::shared_ptr<const Shared> shared_;
  size_t split_;
  std::vector<int64_t> order_;
  int64_t first_id_;
};

/// Clips with the samples of a train clip.
std::string speech_copies(const SpeechDataset::Shared& shared, size_t split) {
  const auto text = [&](const SpeechClip* clip) {
    const std::span<const int16_t> samples = shared.data.clip(*clip);
    return std::string_view(reinterpret_cast<const char*>(samples.data()), samples.size_bytes());
  };
  std::vector<std::string_view> train;
  for (const SpeechClip* clip : shared.chosen.clips[0]) train.push_back(text(clip));
  std::sort(train.begin(), train.end());
  const auto& clips = shared.chosen.clips[split];
  const auto n = std::count_if(clips.begin(), clips.end(),
                               [&](const SpeechClip* clip) { return std::binary_search(train.begin(), train.end(), text(clip)); });
  return fmt::format("{} of {} {} clips have an exact copy in train", n, clips.size(), split_name(static_cast<Split>(split)));
}

OpenedTask open_speech(const OptionMap& given, const std::filesystem::path& data_root, const Stream& subset) {
  const SpeechOptions options = read_speech_options(given);
  auto shared = std::make_shared<SpeechDataset::Shared>();
  shared->data = load_speech_task(options, data_root, false);
  shared->chosen = chosen_clips(options, shared->data);
  const SplitSizes there = shared->chosen.sizes();
  OpenedTask opened;
  opened.facts = speech_facts(options, there, shared->data.data_hash);
  std::vector<std::span<const int16_t>> train;
  for (const SpeechClip* clip : shared->chosen.clips[0]) train.push_back(shared->data.clip(*clip));
  shared->scaling = std::make_unique<const formats::SpeechScaling>(train, options.scaling == "twice");
  shared->resolution = options.resolution;
  shared->length = opened.facts.max_length;

  const auto dataset = [&](size_t split, std::vector<int64_t> order, int64_t first_id) {
    return std::make_shared<const SpeechDataset>(shared, split, std::move(order), first_id);
  };
  const auto stratified = [&](size_t split, int64_t n) {
    return formats::stratified_split(shared->chosen.labels[split], n, static_cast<uint64_t>(options.split_seed)).validation;
  };
  const std::vector<int64_t> all = all_indices(there[0]);
  opened.train = dataset(0, train_members(options.subset, all, opened.facts.train_size, subset), kFirstTrainId);
  opened.unlabelled_train = dataset(0, all, kFirstTrainId);
  opened.validation = dataset(1, stratified(1, opened.facts.validation_size), kFirstValidationId);
  opened.test = dataset(2, stratified(2, opened.facts.test_size), kFirstTestId);
  opened.notes = {speech_copies(*shared, 1), speech_copies(*shared, 2),
                  "each time step is standardised over the whole train split, before a subset is taken from it"};
  if (options.z_score) z_score(opened, 1, kZScoreStoredValues);
  return opened;
}

}  // namespace

/// Speech Commands: which word is spoken, from 16,000 raw samples (SC35, SC30).
Task speech() {
  Task task;
  task.name = "speech";
  task.version = 1;
  task.summary = "which of 35 words (v0.01: 30) is spoken, one raw 16 kHz sample a position, 16,000 positions";
  task.source = "Warden 2018, Speech Commands (arXiv:1804.03209); arXiv:2310.02980 and its code, SC35";
  task.options = schema_of<SpeechOptions>();
  task.validate = [](const OptionMap& given) { read_speech_options(given); };
  task.facts = facts_of_speech;
  task.open = open_speech;
  return task;
}

}  // namespace spt::tasks
