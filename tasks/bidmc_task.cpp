#include "tasks/bidmc_task.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "tasks/formats/split.h"
#include "tasks/split_sizes.h"
#include "tasks/token_dataset.h"
#include "tasks/z_score.h"

namespace spt::tasks {
namespace {

using formats::BidmcTarget;

constexpr double kHeldOut = 0.3, kTestOfHeldOut = 0.5;  // as published: 70/15/15

struct BidmcOptions {
  std::string source = "physionet";
  std::string split = "recording";
  int64_t stride = formats::kBidmcStride;
  bool rescale_targets = true;
  int64_t train_examples = 0;
  int64_t validation_examples = 0;
  int64_t test_examples = 0;
  int64_t split_seed = 42;
  bool partial = false;
  bool z_score = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("source", self.source,
          {.effect = "windows cut from the PhysioNet recordings, or those of the TSER archives (.npy or .ts)",
           .choices = {"physionet", "tser"}});
    visit("split", self.split,
          {.effect = "70/15/15 of the recordings, or of the windows as published, where one recording is in train and in test",
           .choices = {"recording", "window"}});
    visit("stride", self.stride,
          {.effect = "of the windows of physionet; 375 gives as many as published", .min = 1, .max = 60000, .unit = "samples"});
    visit("rescale_targets", self.rescale_targets,
          {.effect = "targets are mapped to [-1, 1] by the smallest and largest of train; mse is in that unit, r2 has none"});
    visit("train_examples", self.train_examples, {.effect = "a subset of windows, nested; 0: all", .min = 0});
    visit("validation_examples", self.validation_examples, {.effect = "a subset by split_seed; 0: all", .min = 0});
    visit("test_examples", self.test_examples, {.effect = "a subset by split_seed; 0: all", .min = 0, .stage = "supervised"});
    visit("split_seed", self.split_seed,
          {.effect = "seed of the split; the published split by window has 0", .min = 0, .max = 4294967294.0});
    visit("partial", self.partial, {.effect = "take recordings or windows that are not the official ones"});
    visit("z_score", self.z_score, z_score_info());
    SubsetOptions::visit(self.subset, visit);
  }
  void validate(const std::string& where) const {
    if (source == "tser" && split == "recording")
      throw Error("{}: the TSER archives do not say from which recording a window is: source = \"tser\" goes with split = \"window\"",
                  where);
    if (source == "tser" && stride != BidmcOptions{}.stride) throw Error("{}: stride = {} goes with source = \"physionet\"", where, stride);
  }
};

BidmcOptions read_bidmc_options(const OptionMap& given, const std::string& where) {
  const auto options = read_options<BidmcOptions>(given, where);
  options.validate(where);
  return options;
}

/// One window, wherever it lies.
struct BidmcWindow {
  const float* values = nullptr;  // (4000, 2)
  double target = 0;
  int64_t recording = -1;  // its id; -1: not known
};

/// All windows, and what holds their values.
struct BidmcWindows {
  formats::BidmcRecordings recordings;
  formats::BidmcTables tables;
  std::vector<BidmcWindow> windows;
  formats::ThreeSplits splits;
  std::string data_hash;
};

/// 70/15/15 of the recordings, each list of windows in their order.
formats::ThreeSplits split_by_recording(const std::vector<BidmcWindow>& windows, int64_t recordings, int64_t split_seed,
                                        const std::string& where) {
  const std::vector<int64_t> order = Stream(static_cast<uint64_t>(split_seed), "split").permutation(recordings, 0);
  const auto held_out = static_cast<int64_t>(std::ceil(kHeldOut * static_cast<double>(recordings)));
  const auto test = static_cast<int64_t>(std::ceil(kTestOfHeldOut * static_cast<double>(held_out)));
  if (test == held_out || held_out >= recordings) throw DataError("{}: {} recordings are too few to split", where, recordings);
  std::map<int64_t, int64_t> place;  // of a recording in that order
  std::vector<int64_t> ids;
  for (const BidmcWindow& window : windows)
    if (ids.empty() || ids.back() != window.recording) ids.push_back(window.recording);
  SPT_CHECK(static_cast<int64_t>(ids.size()) == recordings, "windows of {} recordings out of {}", ids.size(), recordings);
  for (size_t i = 0; i < order.size(); ++i) place[ids[static_cast<size_t>(order[i])]] = static_cast<int64_t>(i);
  formats::ThreeSplits splits;
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t p = place.at(windows[i].recording);
    (p < test ? splits.test : p < held_out ? splits.validation : splits.train).push_back(static_cast<int64_t>(i));
  }
  return splits;
}

void take_recordings(BidmcWindows& all, const BidmcOptions& options, BidmcTarget target, const std::filesystem::path& data_root,
                     const std::string& where) {
  all.recordings = formats::load_bidmc(data_root);
  all.data_hash = all.recordings.data_hash;
  if (all.data_hash != formats::kBidmcOfficialHash && !options.partial)
    throw DataError("{}: the {} recordings below '{}' are not the official 53 (hash {}); partial = true takes them as they are", where,
                    all.recordings.recordings.size(), data_root.string(), all.data_hash.substr(0, 16));
  int64_t with_windows = 0, last = -1;
  for (const formats::BidmcWindowFacts& window : formats::bidmc_windows(all.recordings, target, options.stride)) {
    const formats::BidmcRecording& recording = all.recordings.recordings[static_cast<size_t>(window.recording)];
    all.windows.push_back({recording.signal.data() + window.begin * formats::kBidmcChannels, window.target, recording.id});
    with_windows += window.recording != last;
    last = window.recording;
  }
  all.splits = options.split == "recording" ? split_by_recording(all.windows, with_windows, options.split_seed, where)
                                            : formats::two_stage_split(static_cast<int64_t>(all.windows.size()), kHeldOut, kTestOfHeldOut,
                                                                       static_cast<uint32_t>(options.split_seed));
}

void take_tables(BidmcWindows& all, const BidmcOptions& options, BidmcTarget target, const std::filesystem::path& data_root) {
  all.tables = formats::load_bidmc_tables(data_root, target);
  all.data_hash = all.tables.data_hash;
  const std::array<std::vector<int64_t>*, 3> parts = {&all.splits.train, &all.splits.validation, &all.splits.test};
  for (size_t k = 0; k < all.tables.tables.size(); ++k) {
    const formats::BidmcTable& table = all.tables.tables[k];
    for (int64_t i = 0; i < table.size(); ++i) {
      if (all.tables.is_split) parts[k]->push_back(static_cast<int64_t>(all.windows.size()));
      all.windows.push_back({table.x.data() + i * formats::kBidmcWindow * formats::kBidmcChannels, table.y[static_cast<size_t>(i)], -1});
    }
  }
  if (!all.tables.is_split)
    all.splits = formats::two_stage_split(static_cast<int64_t>(all.windows.size()), kHeldOut, kTestOfHeldOut,
                                          static_cast<uint32_t>(options.split_seed));
}

/// `there`: windows of train, validation and test. Errors: Error where a subset asks for more.
TaskFacts bidmc_facts(const BidmcOptions& options, BidmcTarget target, const SplitSizes& there, const std::string& data_hash,
                      const std::string& where) {
  for (size_t k = 0; k < there.size(); ++k)
    if (there[k] == 0) throw DataError("{}: there are no {} windows", where, split_name(static_cast<Split>(k)));
  const SplitSizes sizes =
      examples_asked({options.train_examples, options.validation_examples, options.test_examples}, there, where, options.subset);
  TaskFacts facts;
  facts.kind = "regression";
  facts.channels = formats::kBidmcChannels;
  facts.max_length = formats::kBidmcWindow;
  facts.train_lengths = {{formats::kBidmcWindow, sizes[0]}};
  facts.outputs = 1;
  facts.mask_ratio = 0.25;
  facts.metrics = {{"r2", "", true}, {"mse", "", false}};
  facts.train_size = sizes[0];
  facts.validation_size = sizes[1];
  facts.test_size = sizes[2];
  facts.data_hash = data_hash;
  facts.data_source = options.source == "tser" ? fmt::format("TSER archive BIDMC32{} (no official SHA-256 is known to compare with)",
                                                             formats::kBidmcFolders[static_cast<size_t>(target)])
                                               : "BIDMC PPG and Respiration 1.0.0 (PhysioNet), windows of 32 s";
  facts.partial = options.partial;
  return facts;
}

SplitSizes bidmc_sizes(const formats::ThreeSplits& splits) {
  return {static_cast<int64_t>(splits.train.size()), static_cast<int64_t>(splits.validation.size()),
          static_cast<int64_t>(splits.test.size())};
}

BidmcWindows load_bidmc_windows(const BidmcOptions& options, BidmcTarget target, const std::filesystem::path& data_root,
                                const std::string& where) {
  BidmcWindows all;
  if (options.source == "tser") take_tables(all, options, target, data_root);
  else take_recordings(all, options, target, data_root, where);
  return all;
}

TaskFacts facts_of_bidmc(const BidmcOptions& options, BidmcTarget target, const std::filesystem::path& data_root,
                         const std::string& where) {
  const bool known = options.source == "physionet" && !options.partial && options.stride % formats::kBidmcStride == 0;
  if (!known) {
    const BidmcWindows all = load_bidmc_windows(options, target, data_root, where);
    return bidmc_facts(options, target, bidmc_sizes(all.splits), all.data_hash, where);
  }
  // Every window of the official recordings that begins at a whole number of strides has a value of each target, so planning needs no data.
  std::vector<BidmcWindow> windows;
  for (int64_t id = 1; id <= formats::kBidmcRecordings; ++id)
    for (int64_t begin = 0; begin + formats::kBidmcWindow <= formats::kBidmcSamples; begin += options.stride)
      windows.push_back({nullptr, 0, id});
  const auto n = static_cast<int64_t>(windows.size());
  const auto splits = options.split == "recording"
                          ? split_by_recording(windows, formats::kBidmcRecordings, options.split_seed, where)
                          : formats::two_stage_split(n, kHeldOut, kTestOfHeldOut, static_cast<uint32_t>(options.split_seed));
  return bidmc_facts(options, target, bidmc_sizes(splits), std::string(formats::kBidmcOfficialHash), where);
}

/// Some windows as sequences of (4000, 2).
class BidmcDataset : public Dataset {
 public:
  BidmcDataset(std::shared_ptr<const BidmcWindows> all, std::shared_ptr<const formats::TargetScaling> scaling, std::vector<int64_t> order)
      : all_(std::move(all)), scaling_(std::move(scaling)), order_(std::move(order)) {}
  int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  int64_t length(int64_t) const override { return formats::kBidmcWindow; }
  int64_t label(int64_t) const override { return -1; }
  int64_t cluster(int64_t index) const override {
    return all_->windows[static_cast<size_t>(order_.at(static_cast<size_t>(index)))].recording;
  }

  Batch batch(std::span<const int64_t> indices) const override {
    constexpr int64_t kNumbers = formats::kBidmcWindow * formats::kBidmcChannels;
    const auto n = static_cast<int64_t>(indices.size());
    Batch batch;
    batch.values = torch::empty({n, formats::kBidmcWindow, formats::kBidmcChannels}, torch::kFloat32);
    batch.lengths = torch::full({n}, formats::kBidmcWindow, torch::kInt64);
    batch.targets = torch::empty({n, 1}, torch::kFloat32);
    batch.example_ids = torch::empty({n}, torch::kInt64);
    for (int64_t b = 0; b < n; ++b) {
      const int64_t index = indices[static_cast<size_t>(b)];
      SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
      const int64_t id = order_[static_cast<size_t>(index)];
      const BidmcWindow& window = all_->windows[static_cast<size_t>(id)];
      std::copy_n(window.values, kNumbers, batch.values.data_ptr<float>() + b * kNumbers);
      batch.targets.data_ptr<float>()[b] = static_cast<float>(scaling_ ? (*scaling_)(window.target) : window.target);
      batch.example_ids.data_ptr<int64_t>()[b] = id;
    }
    return batch;
  }

 private:
  std::shared_ptr<const BidmcWindows> all_;
  std::shared_ptr<const formats::TargetScaling> scaling_;  // null: targets as they are
  std::vector<int64_t> order_;
};

/// n of a split's windows, in their order; the same for every seed of a job.
std::vector<int64_t> chosen_windows(const std::vector<int64_t>& windows, int64_t n, int64_t split_seed) {
  std::vector<int64_t> chosen = formats::subset(windows, n, Stream(static_cast<uint64_t>(split_seed), "split"));
  if (chosen.size() < windows.size()) std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string bidmc_note(const BidmcOptions& options) {
  return options.split == "window"
             ? "split by window, as published: windows overlap, and the same recording is in train, validation and test"
             : "no recording is in two splits";
}

OpenedTask open_bidmc(const BidmcOptions& options, BidmcTarget target, const std::filesystem::path& data_root, const Stream& subset,
                      const std::string& where) {
  const auto all = std::make_shared<const BidmcWindows>(load_bidmc_windows(options, target, data_root, where));
  OpenedTask opened;
  opened.facts = bidmc_facts(options, target, bidmc_sizes(all->splits), all->data_hash, where);
  std::shared_ptr<const formats::TargetScaling> scaling;
  if (options.rescale_targets) {
    std::vector<double> train;
    for (const int64_t i : all->splits.train) train.push_back(all->windows[static_cast<size_t>(i)].target);
    scaling = std::make_shared<const formats::TargetScaling>(train);
  }
  const auto dataset = [&](std::vector<int64_t> order) { return std::make_shared<const BidmcDataset>(all, scaling, std::move(order)); };
  opened.train = dataset(train_members(options.subset, all->splits.train, opened.facts.train_size, subset));
  opened.unlabelled_train = dataset(all->splits.train);
  opened.validation = dataset(chosen_windows(all->splits.validation, options.validation_examples, options.split_seed));
  opened.test = dataset(chosen_windows(all->splits.test, options.test_examples, options.split_seed));
  opened.notes = {bidmc_note(options)};
  if (options.z_score) z_score(opened, formats::kBidmcChannels, kZScoreStoredValues);
  return opened;
}

}  // namespace

Task bidmc_task(std::string name, formats::BidmcTarget target, std::string summary) {
  const std::string where = "task " + name;
  Task task;
  task.name = std::move(name);
  task.version = 1;
  task.summary = std::move(summary);
  task.source =
      "Pimentel et al. 2016, BIDMC PPG and Respiration Dataset; windows as in TSER (Tan et al. 2021); arXiv:2310.02980 and its code";
  task.leaks = "no window; with split = \"window\", as published, overlapping windows and recordings";
  task.options = schema_of<BidmcOptions>();
  task.validate = [where](const OptionMap& given) { read_bidmc_options(given, where); };
  task.facts = [target, where](const OptionMap& given, const std::filesystem::path& root) {
    return facts_of_bidmc(read_bidmc_options(given, where), target, root, where);
  };
  task.open = [target, where](const OptionMap& given, const std::filesystem::path& root, const Stream& subset) {
    return open_bidmc(read_bidmc_options(given, where), target, root, subset, where);
  };
  return task;
}

}  // namespace spt::tasks
