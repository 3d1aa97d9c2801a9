#include "tasks/token_dataset.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "harness/base/error.h"
#include "tasks/formats/vocabulary.h"

namespace spt::tasks {

void TokenRows::add(std::span<const int64_t> ids, int64_t label) {
  for (const int64_t id : ids) {
    SPT_CHECK(id >= 0 && id <= std::numeric_limits<uint16_t>::max(), "token id {}", id);
    ids_.push_back(static_cast<uint16_t>(id));
  }
  ends_.push_back(ids_.size());
  labels_.push_back(label);
}

void TokenRows::reserve(size_t tokens, size_t rows) {
  ids_.reserve(tokens);
  ends_.reserve(rows + 1);
  labels_.reserve(rows);
}

TokenDataset::TokenDataset(std::shared_ptr<const TokenRows> rows, std::vector<int64_t> order, int64_t first_id)
    : rows_(std::move(rows)), order_(std::move(order)), first_id_(first_id) {
  for (const int64_t i : order_) SPT_CHECK(i >= 0 && i < rows_->size(), "row {} of {}", i, rows_->size());
}

int64_t TokenDataset::row(int64_t index) const {
  SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
  return order_[index];
}

int64_t TokenDataset::length(int64_t index) const { return static_cast<int64_t>(rows_->row(row(index)).size()); }

int64_t TokenDataset::label(int64_t index) const { return rows_->label(row(index)); }

Batch TokenDataset::batch(std::span<const int64_t> indices) const {
  const auto n = static_cast<int64_t>(indices.size());
  int64_t longest = 0;
  for (const int64_t index : indices) longest = std::max(longest, length(index));
  Batch batch;
  batch.tokens = torch::full({n, longest}, formats::kPadId, torch::kInt64);
  batch.lengths = torch::empty({n}, torch::kInt64);
  batch.labels = torch::empty({n}, torch::kInt64);
  batch.example_ids = torch::empty({n}, torch::kInt64);
  for (int64_t b = 0; b < n; ++b) {
    const int64_t i = row(indices[b]);
    const auto ids = rows_->row(i);
    std::copy(ids.begin(), ids.end(), batch.tokens.data_ptr<int64_t>() + b * longest);
    batch.lengths.data_ptr<int64_t>()[b] = static_cast<int64_t>(ids.size());
    batch.labels.data_ptr<int64_t>()[b] = rows_->label(i);
    batch.example_ids.data_ptr<int64_t>()[b] = first_id_ + i;
  }
  return batch;
}

std::vector<int64_t> all_indices(int64_t n) {
  std::vector<int64_t> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<std::pair<int64_t, int64_t>> length_histogram(const TokenRows& rows) {
  std::map<int64_t, int64_t> counts;
  for (int64_t i = 0; i < rows.size(); ++i) ++counts[static_cast<int64_t>(rows.row(i).size())];
  return {counts.begin(), counts.end()};
}

}  // namespace spt::tasks
