#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tasks/task.h"

namespace spt::tasks {

/// Encoded sequences and their classes, in one block of memory (two bytes a token).
class TokenRows {
 public:
  /// Errors: SPT_CHECK that ids fit into 16 bits.
  void add(std::span<const int64_t> ids, int64_t label);
  void reserve(size_t tokens, size_t rows);  ///< growing by itself would take up to twice the memory
  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  std::span<const uint16_t> row(int64_t i) const { return std::span(ids_).subspan(ends_[i], ends_[i + 1] - ends_[i]); }
  int64_t label(int64_t i) const { return labels_[i]; }

 private:
  std::vector<uint16_t> ids_;
  std::vector<size_t> ends_ = {0};
  std::vector<int64_t> labels_;
};

/// Some of the rows, in an order of its own, as a split.
///
/// Shapes: tokens (B, L) with L the longest row of the batch, padded on the right with `<pad>`; lengths, labels, example_ids (B).
class TokenDataset : public Dataset {
 public:
  /// `first_id`: example id of row 0; ids of two splits must not meet.
  TokenDataset(std::shared_ptr<const TokenRows> rows, std::vector<int64_t> order, int64_t first_id);
  int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  Batch batch(std::span<const int64_t> indices) const override;
  int64_t length(int64_t index) const override;
  int64_t label(int64_t index) const override;

 private:
  int64_t row(int64_t index) const;
  std::shared_ptr<const TokenRows> rows_;
  std::vector<int64_t> order_;
  int64_t first_id_;
};

/// First example ids: far enough apart for any split, and the same whatever the sizes are, because masks are functions of the id.
inline constexpr int64_t kFirstTrainId = 0;
inline constexpr int64_t kFirstValidationId = int64_t{1} << 32;
inline constexpr int64_t kFirstTestId = int64_t{2} << 32;

std::vector<int64_t> all_indices(int64_t n);  ///< 0 .. n-1

/// (length, how many rows), by length.
std::vector<std::pair<int64_t, int64_t>> length_histogram(const TokenRows& rows);

}  // namespace spt::tasks
