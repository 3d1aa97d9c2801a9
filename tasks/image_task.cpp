#include "tasks/image_task.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "tasks/formats/split.h"

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

int64_t at_most(const char* option, int64_t asked, int64_t there, const std::string& where) {
  if (asked > there) throw Error("{}: {} = {}, there are {} (0: all)", where, option, asked, there);
  return asked == 0 ? there : asked;
}

ImageSizes image_sizes(const ImageTaskOptions& options, const formats::ImageCounts& counts, const std::string& where) {
  ImageSizes sizes{};
  sizes.validation_split = std::min(kMostValidation, counts.train / 10);
  sizes.pool_of_train = counts.train - sizes.validation_split;
  sizes.train = at_most("train_examples", options.train_examples, sizes.pool_of_train, where);
  sizes.validation = at_most("validation_examples", options.validation_examples, sizes.validation_split, where);
  sizes.test = at_most("test_examples", options.test_examples, counts.test, where);
  if (sizes.train == 0 || sizes.validation == 0 || sizes.test == 0)
    throw DataError("{}: {} train and {} test images are too few to split", where, counts.train, counts.test);
  return sizes;
}

formats::ImageSteps image_steps(const ImageTaskSource& source, const ImageTaskOptions& options, const std::string& where) {
  return {source.channels, source.side, source.side, {.pool = options.pool, .patch = options.patch}, source.scaling, where};
}

/// Some images of a set, as sequences.
class ImageDataset : public Dataset {
 public:
  ImageDataset(std::shared_ptr<const formats::ImageSet> images, std::shared_ptr<const formats::ImageSteps> steps, std::vector<int64_t> members, int64_t first_id)
      : images_(std::move(images)), steps_(std::move(steps)), members_(std::move(members)), first_id_(first_id) {}

  int64_t size() const override { return static_cast<int64_t>(members_.size()); }
  int64_t length(int64_t) const override { return steps_->length(); }
  int64_t label(int64_t index) const override { return images_->labels[member(index)]; }
  std::span<const int64_t> members() const { return members_; }

  Batch batch(std::span<const int64_t> indices) const override {
    const auto b = static_cast<int64_t>(indices.size());
    const auto step_values = static_cast<size_t>(steps_->length() * steps_->width());
    Batch batch;
    batch.values = torch::empty({b, steps_->length(), steps_->width()}, torch::kFloat32);
    batch.lengths = torch::full({b}, steps_->length(), torch::kInt64);
    batch.labels = torch::empty({b}, torch::kInt64);
    batch.example_ids = torch::empty({b}, torch::kInt64);
    auto* values = batch.values.data_ptr<float>();
    auto* labels = batch.labels.data_ptr<int64_t>();
    auto* ids = batch.example_ids.data_ptr<int64_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t m = member(indices[i]);
      steps_->write(images_->image(m), {values + i * step_values, step_values});
      labels[i] = images_->labels[m];
      ids[i] = first_id_ + m;
    }
    return batch;
  }

 private:
  int64_t member(int64_t index) const {
    SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
    return members_[index];
  }

  std::shared_ptr<const formats::ImageSet> images_;
  std::shared_ptr<const formats::ImageSteps> steps_;
  std::vector<int64_t> members_;
  int64_t first_id_;
};

TaskFacts image_facts(const ImageTaskSource& source, const ImageTaskOptions& options, const formats::ImageCounts& counts, const std::string& data_hash) {
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
  if (!options.partial) return image_facts(source, options, source.counts(formats::official_files(manifest)), formats::official_hash(manifest));
  const formats::VerifiedRecord local = formats::local_data(manifest, data_root);
  return image_facts(source, options, source.counts(local.files), local.data_hash);
}

formats::TwoSplits carve_validation(const formats::ImageSet& images, const ImageTaskOptions& options, const ImageSizes& sizes) {
  if (options.split == "stratified") return formats::stratified_split(images.labels, sizes.validation_split, static_cast<uint64_t>(options.split_seed));
  const std::array<int64_t, 2> parts = {sizes.pool_of_train, sizes.validation_split};
  auto pieces = formats::random_split(images.n, parts, static_cast<uint32_t>(options.split_seed));
  return {std::move(pieces[0]), std::move(pieces[1])};
}

/// n of `members`, with the shares of the classes kept; the same for every seed of a job.
std::vector<int64_t> stratified_members(const formats::ImageSet& images, const std::vector<int64_t>& members, int64_t n, int64_t split_seed) {
  if (n == static_cast<int64_t>(members.size())) return members;
  std::vector<uint8_t> labels;
  for (const int64_t m : members) labels.push_back(images.labels[m]);
  std::vector<int64_t> chosen = formats::stratified_split(labels, n, static_cast<uint64_t>(split_seed)).validation;
  for (int64_t& i : chosen) i = members[i];
  return chosen;
}

std::string_view image_text(const formats::ImageSet& images, int64_t i) {
  const std::span<const uint8_t> bytes = images.image(i);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// How many of `members` are, pixel by pixel, also in the train split.
std::string duplicates_note(const std::unordered_set<std::string_view>& train, const formats::ImageSet& images, std::span<const int64_t> members, Split split) {
  const auto n = std::count_if(members.begin(), members.end(), [&](int64_t m) { return train.contains(image_text(images, m)); });
  return fmt::format("{} of {} {} images have an exact copy in train", n, members.size(), split_name(split));
}

OpenedTask open_images(const ImageTaskSource& source, const ImageTaskOptions& options, const std::filesystem::path& data_root, const Stream& subset) {
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
    return std::make_shared<const ImageDataset>(images, steps, std::move(members), first_id);
  };
  const auto chosen_train = dataset(train_images, formats::subset(splits.train, sizes.train, subset), 0);
  const auto chosen_validation = dataset(train_images, stratified_members(*train_images, splits.validation, sizes.validation, options.split_seed), 0);
  const auto chosen_test = dataset(test_images, stratified_members(*test_images, test, sizes.test, options.split_seed), train_images->n);
  std::unordered_set<std::string_view> train_texts;
  for (const int64_t m : splits.train) train_texts.insert(image_text(*train_images, m));
  opened.notes = {duplicates_note(train_texts, *train_images, chosen_validation->members(), Split::kValidation),
                  duplicates_note(train_texts, *test_images, chosen_test->members(), Split::kTest)};
  opened.train = chosen_train;
  opened.validation = chosen_validation;
  opened.test = chosen_test;
  opened.unlabelled_train = sizes.train == sizes.pool_of_train ? chosen_train : dataset(train_images, splits.train, 0);
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
  task.facts = [shared, read](const OptionMap& options, const std::filesystem::path& root) { return planned_image_facts(*shared, read(options), root); };
  task.open = [shared, read](const OptionMap& options, const std::filesystem::path& root, const Stream& subset) {
    return open_images(*shared, read(options), root, subset);
  };
  return task;
}

}  // namespace spt::tasks
