#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tasks/formats/image.h"
#include "tasks/formats/image_source.h"
#include "tasks/task.h"

namespace spt::tasks {

/// Some images of a source, as sequences.
///
/// Shapes: values (B, L, width of a step) float32; lengths, labels, example_ids (B). An example's id is `first_id` + its number in the
/// source.
class ImageDataset : public Dataset {
 public:
  ImageDataset(std::shared_ptr<const formats::ImageSource> images, std::shared_ptr<const formats::ImageSteps> steps,
               std::vector<int64_t> members, int64_t first_id)
      : images_(std::move(images)), steps_(std::move(steps)), members_(std::move(members)), first_id_(first_id) {}

  int64_t size() const override { return static_cast<int64_t>(members_.size()); }
  Batch batch(std::span<const int64_t> indices) const override;
  int64_t length(int64_t) const override { return steps_->length(); }
  int64_t label(int64_t index) const override { return images_->label(member(index)); }
  std::span<const int64_t> members() const { return members_; }

 private:
  int64_t member(int64_t index) const;

  std::shared_ptr<const formats::ImageSource> images_;
  std::shared_ptr<const formats::ImageSteps> steps_;
  std::vector<int64_t> members_;
  int64_t first_id_;
};

/// n of `members`, with the shares of the classes kept; the same for every seed of a job.
std::vector<int64_t> stratified_members(const formats::ImageSource& images, const std::vector<int64_t>& members, int64_t n,
                                        int64_t split_seed);

}  // namespace spt::tasks
