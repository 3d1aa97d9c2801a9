#include "tasks/image_dataset.h"

#include <torch/types.h>

#include "harness/base/error.h"
#include "tasks/formats/split.h"

namespace spt::tasks {

Batch ImageDataset::batch(std::span<const int64_t> indices) const {
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
  std::vector<uint8_t> scratch;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t m = member(indices[i]);
    steps_->write(images_->image(m, scratch), {values + i * step_values, step_values});
    labels[i] = images_->label(m);
    ids[i] = first_id_ + m;
  }
  return batch;
}

int64_t ImageDataset::member(int64_t index) const {
  SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
  return members_[index];
}

std::vector<int64_t> stratified_members(const formats::ImageSource& images, const std::vector<int64_t>& members, int64_t n,
                                        int64_t split_seed) {
  if (n == static_cast<int64_t>(members.size())) return members;
  std::vector<uint8_t> labels;
  for (const int64_t m : members) labels.push_back(images.label(m));
  std::vector<int64_t> chosen = formats::stratified_split(labels, n, static_cast<uint64_t>(split_seed)).validation;
  for (int64_t& i : chosen) i = members[i];
  return chosen;
}

}  // namespace spt::tasks
