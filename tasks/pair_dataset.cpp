#include "tasks/pair_dataset.h"

#include <torch/torch.h>

#include <algorithm>

#include "harness/base/error.h"
#include "tasks/formats/vocabulary.h"

namespace spt::tasks {

PairDataset::PairDataset(std::shared_ptr<const TokenRows> rows, std::shared_ptr<const std::vector<DocumentPair>> pairs,
                         std::vector<int64_t> order, int64_t first_id)
    : rows_(std::move(rows)), pairs_(std::move(pairs)), order_(std::move(order)), first_id_(first_id) {
  for (const int64_t i : order_) SPT_CHECK(i >= 0 && i < static_cast<int64_t>(pairs_->size()), "pair {} of {}", i, pairs_->size());
}

const DocumentPair& PairDataset::pair(int64_t index) const {
  SPT_CHECK(index >= 0 && index < size(), "example {} of {}", index, size());
  return (*pairs_)[static_cast<size_t>(order_[static_cast<size_t>(index)])];
}

int64_t PairDataset::length(int64_t index) const {
  return static_cast<int64_t>(std::max(rows_->row(pair(index).first).size(), rows_->row(pair(index).second).size()));
}

Batch PairDataset::batch(std::span<const int64_t> indices) const {
  const auto n = static_cast<int64_t>(indices.size());
  int64_t longest = 0;
  for (const int64_t index : indices) longest = std::max(longest, length(index));
  Batch batch;
  batch.documents = 2;
  batch.tokens = torch::full({2 * n, longest}, formats::kPadId, torch::kInt64);
  batch.lengths = torch::empty({2 * n}, torch::kInt64);
  batch.labels = torch::empty({n}, torch::kInt64);
  batch.example_ids = torch::empty({n}, torch::kInt64);
  for (int64_t b = 0; b < n; ++b) {
    const DocumentPair& documents = pair(indices[static_cast<size_t>(b)]);
    for (const auto& [row, document] : {std::pair(b, documents.first), std::pair(n + b, documents.second)}) {
      const auto ids = rows_->row(document);
      std::copy(ids.begin(), ids.end(), batch.tokens.data_ptr<int64_t>() + row * longest);
      batch.lengths.data_ptr<int64_t>()[row] = static_cast<int64_t>(ids.size());
    }
    batch.labels.data_ptr<int64_t>()[b] = documents.label;
    batch.example_ids.data_ptr<int64_t>()[b] = first_id_ + order_[static_cast<size_t>(indices[static_cast<size_t>(b)])];
  }
  return batch;
}

}  // namespace spt::tasks
