#include "tasks/image_task.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "tasks/formats/split.h"
#include "tasks/image_dataset.h"
#include "tasks/split_sizes.h"

namespace spt::tasks {
namespace {

constexpr int64_t kImageClasses = 10;
constexpr int64_t kMostValidation = 5'000;
constexpr double kPixelMaskRatio = 0.5;

struct ImageSizes {
  int64_t pool_of_train;  ///< train split before train_examples
  int64_t train;
  int64_t validation_split;
  int64_t validation;
  int64_t test;
};

ImageSizes image_sizes(const ImageTaskOptions& options, const formats::ImageCounts& counts, const std::string& where) {
  ImageSizes sizes{};
  sizes.validation_split = std::min(kMostValidation, counts.train / 10);
  sizes.pool_of_train = counts.train - sizes.validation_split;
  const SplitSizes asked = {options.train_examples, options.validation_examples, options.test_examples};
  const SplitSizes chosen = examples_asked(asked, {sizes.pool_of_train, sizes.validation_split, counts.test}, where, options.subset);
  sizes.train = chosen[0];
  sizes.validation = chosen[1];
  sizes.test = chosen[2];
  if (sizes.train == 0 || sizes.validation == 0 || sizes.test == 0)
    throw DataError("{}: {} train and {} test images are too few to split", where, counts.train, counts.test);
  return sizes;
}

formats::ImageSteps image_steps(const ImageTaskSource& source, const ImageTaskOptions& options, const std::string& where) {
  return {source.channels, source.side, source.side, {.pool = options.pool, .patch = options.patch}, source.scaling, where};
}

TaskFacts image_facts(const ImageTaskSource& source, const ImageTaskOptions& options, const formats::ImageCounts& counts,
                      const std::string& data_hash) {
  const std::string where = fmt::format("task '{}'", source.name);
  const ImageSizes sizes = image_sizes(options, counts, where);
  const formats::ImageSteps steps = image_steps(source, options, where);
  const formats::Manifest& manifest = formats::manifest(source.name);
  TaskFacts facts;
  facts.channels = steps.width();
  facts.max_length = steps.length();
  facts.train_lengths = {{steps.length(), sizes.train}};
  facts.outputs = kImageClasses;
  facts.value_loss = "mae";
  facts.mask_ratio = kPixelMaskRatio;
  facts.metrics = {{.name = "accuracy", .unit = "", .higher_is_better = true}};
  facts.train_size = sizes.train;
  facts.validation_size = sizes.validation;
  facts.test_size = sizes.test;
  facts.data_hash = data_hash;
  facts.data_source = fmt::format("{} ({})", manifest.title, manifest.source);
  facts.partial = data_hash != formats::official_hash(manifest);
  return facts;
}

TaskFacts planned_image_facts(const ImageTaskSource& source, const ImageTaskOptions& options, const std::filesystem::path& data_root) {
  const formats::Manifest& manifest = formats::manifest(source.name);
  if (!options.partial) {
    TaskFacts facts = image_facts(source, options, source.counts(formats::official_files(manifest)), formats::official_hash(manifest));
    facts.data_source += ", by its official sizes and hash: no file was looked at";
    return facts;
  }
  const formats::VerifiedRecord local = formats::local_data(manifest, data_root);
  return image_facts(source, options, source.counts(local.files), local.data_hash);
}

formats::TwoSplits carve_validation(const formats::ImageSet& images, const ImageTaskOptions& options, const ImageSizes& sizes) {
  if (options.split == "stratified")
    return formats::stratified_split(images.labels, sizes.validation_split, static_cast<uint64_t>(options.split_seed));
  const std::array<int64_t, 2> parts = {sizes.pool_of_train, sizes.validation_split};
  auto pieces = formats::random_split(images.n, parts, static_cast<uint32_t>(options.split_seed));
  return {std::move(pieces[0]), std::move(pieces[1])};
}

std::string_view image_text(const formats::ImageSet& images, int64_t i) {
  const std::span<const uint8_t> bytes = images.image(i);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// How many of `members` are, pixel by pixel, also in the train split.
std::string duplicates_note(const std::unordered_set<std::string_view>& train, const formats::ImageSet& images,
                            std::span<const int64_t> members, Split split) {
  const auto n = std::count_if(members.begin(), members.end(), [&](int64_t m) { return train.contains(image_text(images, m)); });
  return fmt::format("{} of {} {} images have an exact copy in train", n, members.size(), split_name(split));
}

OpenedTask open_images(const ImageTaskSource& source, const ImageTaskOptions& options, const std::filesystem::path& data_root,
                       const Stream& subset) {
  formats::ImageData data = source.load(data_root, options.partial);
  const formats::ImageCounts counts{.train = data.train.n, .test = data.test.n};
  const std::string where = fmt::format("task '{}'", source.name);
  const ImageSizes sizes = image_sizes(options, counts, where);
  OpenedTask opened;
  opened.facts = image_facts(source, options, counts, data.data_hash);
  const auto train_images = std::make_shared<const formats::ImageSet>(std::move(data.train));
  const auto test_images = std::make_shared<const formats::ImageSet>(std::move(data.test));
  const auto steps = std::make_shared<const formats::ImageSteps>(image_steps(source, options, where));
  const formats::TwoSplits splits = carve_validation(*train_images, options, sizes);
  std::vector<int64_t> test(static_cast<size_t>(test_images->n));
  std::iota(test.begin(), test.end(), 0);
  const auto dataset = [&](const auto& images, std::vector<int64_t> members, int64_t first_id) {
    return std::make_shared<const ImageDataset>(std::make_shared<const formats::StoredImages>(images), steps, std::move(members), first_id);
  };
  const auto some = [&](const auto& images, const std::vector<int64_t>& members, int64_t n) {
    return stratified_members(formats::StoredImages(images), members, n, options.split_seed);
  };
  const auto chosen_train = dataset(train_images, train_members(options.subset, splits.train, sizes.train, subset), 0);
  const auto chosen_validation = dataset(train_images, some(train_images, splits.validation, sizes.validation), 0);
  const auto chosen_test = dataset(test_images, some(test_images, test, sizes.test), train_images->n);
  std::unordered_set<std::string_view> train_texts;
  for (const int64_t m : splits.train) train_texts.insert(image_text(*train_images, m));
  opened.notes = {duplicates_note(train_texts, *train_images, chosen_validation->members(), Split::kValidation),
                  duplicates_note(train_texts, *test_images, chosen_test->members(), Split::kTest)};
  opened.train = chosen_train;
  opened.validation = chosen_validation;
  opened.test = chosen_test;
  opened.unlabelled_train = sizes.train == sizes.pool_of_train ? chosen_train : dataset(train_images, splits.train, 0);
  if (options.z_score) z_score(opened, source.channels, kZScoreStoredValues);
  return opened;
}

}  // namespace

Task image_task(ImageTaskSource source) {
  const formats::Manifest& manifest = formats::manifest(source.name);
  const auto shared = std::make_shared<const ImageTaskSource>(std::move(source));
  const std::string where = fmt::format("task '{}'", shared->name);
  const auto read = [where](const OptionMap& options) { return read_options<ImageTaskOptions>(options, where); };
  Task task;
  task.name = shared->name;
  task.version = shared->version;
  task.summary = shared->summary;
  task.source = manifest.source;
  task.options = schema_of<ImageTaskOptions>();
  task.validate = [shared, read, where](const OptionMap& options) { image_steps(*shared, read(options), where); };
  task.facts = [shared, read](const OptionMap& options, const std::filesystem::path& root) {
    return planned_image_facts(*shared, read(options), root);
  };
  task.open = [shared, read](const OptionMap& options, const std::filesystem::path& root, const Stream& subset) {
    return open_images(*shared, read(options), root, subset);
  };
  return task;
}

}  // namespace spt::tasks
