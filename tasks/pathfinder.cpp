#include "tasks/formats/pathfinder.h"

#include <algorithm>
#include <array>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/split.h"
#include "tasks/image_dataset.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/token_dataset.h"
#include "tasks/z_score.h"

namespace spt::tasks {
namespace {

constexpr int64_t kPathfinderKeptBytes = int64_t{1} << 30;  // of decoded or drawn images, a split
constexpr double kPathfinderMaskRatio = 0.5;

struct PathfinderTaskOptions {
  std::string source = "generated";
  int64_t pool = 1;
  int64_t patch = 1;
  int64_t train_examples = 0;
  int64_t validation_examples = 0;
  int64_t test_examples = 0;
  std::string split = "stratified";
  int64_t split_seed = 42;
  int64_t generator_seed = 0;
  bool partial = false;
  bool z_score = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("source", self.source,
          {.effect = "images of our generator, drawn when they are needed, or Long Range Arena's files", .choices = {"generated", "lra"}});
    visit("pool", self.pool, {.effect = "k: k x k pixels become their mean first", .min = 1});
    visit("patch", self.patch, {.effect = "p: p x p pixels are one step of p * p channels", .min = 1});
    visit("train_examples", self.train_examples,
          {.effect = "the first n of a permutation of the train split; 0: all 160,000", .min = 0, .unit = "examples"});
    visit("validation_examples", self.validation_examples,
          {.effect = "n of the validation split, stratified; 0: all 20,000", .min = 0, .unit = "examples"});
    visit("test_examples", self.test_examples,
          {.effect = "n of the test split, stratified; 0: all 20,000", .min = 0, .unit = "examples", .stage = "supervised"});
    visit("split", self.split,
          {.effect =
               "files: validation as torch's random_split gives it, as published, or stratified; test is always the published third piece",
           .choices = {"random", "stratified"}});
    visit("split_seed", self.split_seed, {.effect = "files: seed of that split", .min = 0, .max = 4294967295.0});
    visit("generator_seed", self.generator_seed, {.effect = "which images are generated; not the job's seed", .min = 0});
    visit("partial", self.partial, {.effect = "take files without Long Range Arena's 200,000 images"});
    visit("z_score", self.z_score, z_score_info());
    SubsetOptions::visit(self.subset, visit);
  }

  void validate(const std::string& where) const {
    const PathfinderTaskOptions defaults;
    const auto goes_with = [&](const char* name, bool changed, const char* needed) {
      if (changed && source != needed) throw Error("{}: {} goes with source = \"{}\"", where, name, needed);
    };
    goes_with("split", split != defaults.split, "lra");
    goes_with("split_seed", split_seed != defaults.split_seed, "lra");
    goes_with("partial", partial, "lra");
    goes_with("generator_seed", generator_seed != defaults.generator_seed, "generated");
  }
};

using Images = std::shared_ptr<const formats::ImageSource>;

/// The three splits: images and, of each, those that are in it.
struct PathfinderSplits {
  std::array<Images, 3> images;  // train, validation, test
  std::array<std::vector<int64_t>, 3> members;
  std::array<int64_t, 3> first_ids;
};

class PathfinderTask {
 public:
  explicit PathfinderTask(formats::PathfinderSet set) : set_(std::move(set)), where_(fmt::format("task '{}'", set_.task)) {}

  PathfinderTaskOptions read(const OptionMap& given) const {
    const auto options = read_options<PathfinderTaskOptions>(given, where_);
    options.validate(where_);
    steps(options);
    return options;
  }

  TaskFacts facts(const PathfinderTaskOptions& options, const std::filesystem::path& data_root) const {
    if (options.source == "generated") return generated_facts(options);
    return file_facts(options, open_index(options, data_root));
  }

  OpenedTask open(const PathfinderTaskOptions& options, const std::filesystem::path& data_root, const Stream& subset) const {
    if (options.source == "generated")
      return opened(options, generated_facts(options), generated_splits(options), subset,
                    {"every image is drawn on its own: none is in two splits by design"});
    const auto index = std::make_shared<const formats::PathfinderIndex>(open_index(options, data_root));
    return opened(options, file_facts(options, *index), file_splits(options, index), subset, {});
  }

 private:
  formats::ImageSteps steps(const PathfinderTaskOptions& options) const {
    return {1, set_.side, set_.side, {.pool = options.pool, .patch = options.patch}, formats::pathfinder_scaling(), where_};
  }

  static SplitSizes split_sizes(int64_t n) {
    const auto tenth = static_cast<int64_t>(0.1 * static_cast<double>(n));  // as the published code cuts
    return {n - 2 * tenth, tenth, tenth};
  }

  TaskFacts common_facts(const PathfinderTaskOptions& options, int64_t n) const {
    const SplitSizes sizes = examples_asked({options.train_examples, options.validation_examples, options.test_examples}, split_sizes(n),
                                            where_, options.subset);
    const formats::ImageSteps s = steps(options);
    TaskFacts facts;
    facts.channels = s.width();
    facts.max_length = s.length();
    facts.train_size = sizes[0];
    facts.validation_size = sizes[1];
    facts.test_size = sizes[2];
    if (facts.validation_size == 0) throw DataError("{}: {} images are too few to split", where_, n);
    facts.train_lengths = {{s.length(), facts.train_size}};
    facts.outputs = 2;
    facts.value_loss = s.width() == 1 && !options.z_score ? "levels" : "mae";  // classes of grey are for one pixel a step
    facts.mask_ratio = kPathfinderMaskRatio;
    facts.metrics = {{.name = "accuracy", .unit = "", .higher_is_better = true}};
    return facts;
  }

  formats::PathfinderGenerator generator(const PathfinderTaskOptions& options) const {
    return {formats::pathfinder_options(set_.side), static_cast<uint64_t>(options.generator_seed)};
  }

  TaskFacts generated_facts(const PathfinderTaskOptions& options) const {
    TaskFacts facts = common_facts(options, formats::kPathfinderImages);
    const std::string identity = generator(options).identity();
    facts.data_hash = sha256(identity);
    facts.data_source = "generated: " + identity;
    return facts;
  }

  TaskFacts file_facts(const PathfinderTaskOptions& options, const formats::PathfinderIndex& index) const {
    TaskFacts facts = common_facts(options, static_cast<int64_t>(index.samples.size()));
    facts.data_hash = index.data_hash;
    facts.data_source =
        fmt::format("{}/{} of Long Range Arena (no official SHA-256 is known to compare with)", set_.folder, formats::kPathfinderLevel);
    facts.partial = options.partial;
    return facts;
  }

  /// Image i of a split is image (first id of the split + i) of the generator: another size of one split changes no other.
  PathfinderSplits generated_splits(const PathfinderTaskOptions& options) const {
    PathfinderSplits splits{.images = {}, .members = {}, .first_ids = {kFirstTrainId, kFirstValidationId, kFirstTestId}};
    const auto generator = std::make_shared<const formats::PathfinderGenerator>(this->generator(options));
    const std::array<int64_t, 3> sizes = split_sizes(formats::kPathfinderImages);
    for (size_t k = 0; k < 3; ++k) {
      const int64_t first = splits.first_ids[k];
      std::vector<uint8_t> labels;
      for (int64_t i = 0; i < sizes[k]; ++i) labels.push_back(generator->label(static_cast<uint64_t>(first + i)));
      splits.images[k] = std::make_shared<const formats::MadeImages>(
          std::move(labels), [generator, first](int64_t i) { return generator->image(static_cast<uint64_t>(first + i)).pixels; },
          kPathfinderKeptBytes);
      splits.members[k] = all_indices(sizes[k]);
    }
    return splits;
  }

  PathfinderSplits file_splits(const PathfinderTaskOptions& options, const std::shared_ptr<const formats::PathfinderIndex>& index) const {
    const auto n = static_cast<int64_t>(index->samples.size());
    std::vector<uint8_t> labels;
    for (const formats::PathfinderSample& sample : index->samples) labels.push_back(sample.label);
    const Images images = std::make_shared<const formats::MadeImages>(
        labels, [index](int64_t i) { return formats::read_pathfinder_image(*index, i); }, kPathfinderKeptBytes);
    PathfinderSplits splits{.images = {images, images, images}, .members = {}, .first_ids = {0, 0, 0}};
    auto pieces = formats::random_split(n, split_sizes(n), static_cast<uint32_t>(options.split_seed));
    std::move(pieces.begin(), pieces.end(), splits.members.begin());
    if (options.split == "stratified") {
      std::vector<int64_t> rest = splits.members[0];
      rest.insert(rest.end(), splits.members[1].begin(), splits.members[1].end());
      std::sort(rest.begin(), rest.end());
      std::vector<uint8_t> rest_labels;
      for (const int64_t i : rest) rest_labels.push_back(labels[i]);
      formats::TwoSplits two =
          formats::stratified_split(rest_labels, static_cast<int64_t>(splits.members[1].size()), static_cast<uint64_t>(options.split_seed));
      for (std::vector<int64_t>* part : {&two.train, &two.validation})
        for (int64_t& i : *part) i = rest[i];
      splits.members[0] = std::move(two.train);
      splits.members[1] = std::move(two.validation);
    }
    return splits;
  }

  OpenedTask opened(const PathfinderTaskOptions& options, TaskFacts facts, const PathfinderSplits& splits, const Stream& subset,
                    std::vector<std::string> notes) const {
    const auto s = std::make_shared<const formats::ImageSteps>(steps(options));
    const auto dataset = [&](size_t k, std::vector<int64_t> members) {
      return std::make_shared<const ImageDataset>(splits.images[k], s, std::move(members), splits.first_ids[k]);
    };
    OpenedTask opened;
    opened.train = dataset(0, train_members(options.subset, splits.members[0], facts.train_size, subset));
    opened.validation = dataset(1, stratified_members(*splits.images[1], splits.members[1], facts.validation_size, options.split_seed));
    opened.test = dataset(2, stratified_members(*splits.images[2], splits.members[2], facts.test_size, options.split_seed));
    const bool whole = facts.train_size == static_cast<int64_t>(splits.members[0].size());
    opened.unlabelled_train = whole ? opened.train : dataset(0, splits.members[0]);
    opened.facts = std::move(facts);
    opened.notes = std::move(notes);
    if (options.z_score) z_score(opened, 1, kZScoreMadeValues);
    return opened;
  }

  DataError missing(const std::filesystem::path& data_root) const {
    return DataError(
        "{}: no '{}'; put {} of Long Range Arena's release there, or make a set of the same kind with `spt-bench data make {}`, or take "
        "source = \"generated\"",
        where_, formats::pathfinder_folder(set_, data_root).string(), set_.folder, set_.task);
  }

  formats::PathfinderIndex open_index(const PathfinderTaskOptions& options, const std::filesystem::path& data_root) const {
    const auto folder = formats::find_pathfinder(set_, data_root);
    if (!folder) throw missing(data_root);
    formats::PathfinderIndex index = formats::read_pathfinder_index(*folder, set_.side);
    const auto n = static_cast<int64_t>(index.samples.size());
    if (n != formats::kPathfinderImages && !options.partial)
      throw DataError("'{}' has {} images, not the {} of Long Range Arena; partial = true takes it as it is", folder->string(), n,
                      formats::kPathfinderImages);
    return index;
  }

  formats::PathfinderSet set_;
  std::string where_;
};

Task pathfinder_task(std::string_view name, std::string summary) {
  const formats::PathfinderSet* set = formats::find_pathfinder_set(name);
  SPT_CHECK(set != nullptr, "no Pathfinder set is called {}", name);
  const auto shared = std::make_shared<const PathfinderTask>(*set);
  Task task;
  task.name = name;
  task.version = 1;
  task.summary = std::move(summary);
  task.source = "Linsley et al. 2018, Kim et al. 2020; Long Range Arena (arXiv:2011.04006), contour length 14";
  task.options = schema_of<PathfinderTaskOptions>();
  task.validate = [shared](const OptionMap& given) { shared->read(given); };
  task.facts = [shared](const OptionMap& given, const std::filesystem::path& root) { return shared->facts(shared->read(given), root); };
  task.open = [shared](const OptionMap& given, const std::filesystem::path& root, const Stream& subset) {
    return shared->open(shared->read(given), root, subset);
  };
  return task;
}

}  // namespace

/// Long Range Arena's Pathfinder: are the two marked points the ends of one dashed curve? Pixel by pixel, grey.
Task pathfinder32() {
  return pathfinder_task("pathfinder32", "Pathfinder, 32 x 32 grey images as sequences: are two points on one dashed curve? 2 classes");
}

/// Path-X: the same at 128 x 128, 16,384 steps.
Task pathx() { return pathfinder_task("pathx", "Path-X: Pathfinder of 128 x 128 pixels, 16,384 steps, 2 classes"); }

/// Path-X-256: the same at 256 x 256, 65,536 steps.
Task pathx256() { return pathfinder_task("pathx256", "Path-X-256: Pathfinder of 256 x 256 pixels, 65,536 steps, 2 classes"); }

}  // namespace spt::tasks
