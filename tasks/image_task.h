#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tasks/formats/image.h"
#include "tasks/formats/images_dataset.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/z_score.h"

namespace spt::tasks {

/// Options of a task whose examples are small labelled images.
struct ImageTaskOptions {
  int64_t pool = 1;
  int64_t patch = 1;
  int64_t train_examples = 0;
  int64_t validation_examples = 0;
  int64_t test_examples = 0;
  std::string split = "stratified";
  int64_t split_seed = 42;
  bool partial = false;
  bool z_score = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("pool", self.pool, OptionInfo{.effect = "k: k x k pixels become their mean first", .min = 1});
    visit("patch", self.patch, OptionInfo{.effect = "p: p x p pixels are one step of p * p times the channels of a pixel", .min = 1});
    visit("train_examples", self.train_examples,
          OptionInfo{.effect = "the first n of a permutation of the train split; 0: all", .min = 0, .unit = "examples"});
    visit(
        "validation_examples", self.validation_examples,
        OptionInfo{
            .effect = "n of the validation split (5,000, or a tenth of a smaller set), stratified; 0: all", .min = 0, .unit = "examples"});
    visit("test_examples", self.test_examples,
          OptionInfo{.effect = "n of the test set, stratified; 0: all", .min = 0, .unit = "examples", .stage = "supervised"});
    visit("split", self.split,
          OptionInfo{.effect = "how validation is carved out of train; random: the published torch random_split",
                     .choices = {"random", "stratified"}});
    visit("split_seed", self.split_seed, OptionInfo{.effect = "seed of that split", .min = 0, .max = 4294967295.0});
    visit("partial", self.partial, OptionInfo{.effect = "run on data that are not the whole official set"});
    visit("z_score", self.z_score, z_score_info());
    SubsetOptions::visit(self.subset, visit);
  }
};

/// What one image task has beside the options.
struct ImageTaskSource {
  std::string name;  ///< of the task and of its manifest
  int version = 1;
  std::string summary;
  int64_t side = 0;  ///< height and width
  int64_t channels = 1;
  formats::PixelScaling scaling;
  std::function<formats::ImageData(const std::filesystem::path& data_root, bool partial)> load;  ///< images of `channels`
  std::function<formats::ImageCounts(std::span<const formats::FileIdentity>)> counts;
};

/// A classification task over the steps of images (formats::ImageSteps): values (B, L, patch * patch * channels), 10 classes, accuracy.
///
/// Splits: validation is carved out of the official train set by split_seed; the test set is the official one. Example ids: position in the
/// train files, then in the test files.
/// Random: streams "split" of split_seed and "subset" of the job.
Task image_task(ImageTaskSource source);

}  // namespace spt::tasks
