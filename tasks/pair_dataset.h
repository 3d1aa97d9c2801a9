#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tasks/token_dataset.h"

namespace spt::tasks {

/// Two rows and the class of the pair.
struct DocumentPair {
  int64_t first = 0;
  int64_t second = 0;
  int64_t label = 0;
};

/// Some pairs of token rows, in an order of their own, as a split. Rows may stand in many pairs.
///
/// Shapes: B pairs -> tokens (2B, L) with L the longest row of the batch, padded on the right with `<pad>`: first documents, then their
/// partners; lengths (2B); labels, example_ids (B). length() is that of the longer document.
class PairDataset : public Dataset {
 public:
  /// `first_id`: example id of pair 0; ids of two splits must not meet.
  PairDataset(std::shared_ptr<const TokenRows> rows, std::shared_ptr<const std::vector<DocumentPair>> pairs, std::vector<int64_t> order,
              int64_t first_id);
  int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  Batch batch(std::span<const int64_t> indices) const override;
  int64_t length(int64_t index) const override;
  int64_t label(int64_t index) const override { return pair(index).label; }

 private:
  const DocumentPair& pair(int64_t index) const;
  std::shared_ptr<const TokenRows> rows_;
  std::shared_ptr<const std::vector<DocumentPair>> pairs_;
  std::vector<int64_t> order_;
  int64_t first_id_;
};

}  // namespace spt::tasks
