#include "harness/worker/cost.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "protocols/batches.h"

namespace spt::worker {
namespace {

/// Share of a part's padded positions that the model answers at, for a mean of `positions` a row; negative: all.
double answered_share(double positions, int64_t length) {
  return positions < 0 ? 1.0 : std::min(1.0, positions / static_cast<double>(length));
}

}  // namespace

StageCost::StageCost(models::Architecture architecture, models::ModelSpec spec)
    : architecture_(std::move(architecture)), spec_(std::move(spec)) {}

double StageCost::training(int64_t length, int64_t rows, double share) const {
  models::ModelSpec spec = spec_;
  spec.head.share = share;
  const models::Flops forward = models::model_flops(architecture_, spec, length);
  const double count = static_cast<double>(spec_.head.kind == "retrieval" ? rows / 2 : rows);
  return 3.0 * (forward.fixed + forward.per_example * count);
}

double StageCost::part(const protocols::Prepared& prepared) const {
  const protocols::RowSizes sizes = protocols::row_sizes(prepared.input);
  const double all = static_cast<double>(sizes.rows * sizes.length);
  const bool some = prepared.input.positions.defined();
  return training(sizes.length, sizes.rows, some ? static_cast<double>(prepared.input.positions.size(0)) / all : 1.0);
}

double StageCost::expected_step(const std::vector<std::pair<int64_t, int64_t>>& lengths, const protocols::Objective& objective,
                                int64_t documents, const TrainOptions& train) const {
  int64_t total = 0;
  double positions = 0;
  for (const auto& [length, count] : lengths) {
    total += count;
    positions += objective.expected_positions(length) * static_cast<double>(count);
  }
  SPT_CHECK(total > 0, "no train lengths");
  if (train.order == "bucketed" && lengths.size() > 1)
    return expected_bucketed(lengths, positions / static_cast<double>(total), total, documents, train);
  double expected = 0;
  for (const int64_t part : part_sizes(train.batch, train.accumulate))
    expected += expected_part(lengths, positions / static_cast<double>(total), total, part * documents);
  return expected;
}

double StageCost::expected_part(const std::vector<std::pair<int64_t, int64_t>>& lengths, double positions, int64_t total,
                                int64_t rows) const {
  const int64_t drawn = std::min(rows, total);
  double expected = 0, below = 0;  // probability that no row is longer than the lengths before
  int64_t within = 0;
  for (const auto& [length, count] : lengths) {
    within += count;
    double at_most = 1;
    for (int64_t i = 0; i < drawn && at_most > 0; ++i)
      at_most *= static_cast<double>(std::max<int64_t>(0, within - i)) / static_cast<double>(total - i);
    if (at_most > below) expected += (at_most - below) * training(length, rows, answered_share(positions, length));
    below = at_most;
  }
  return expected;
}

/// What a Sampler with Buckets does, for rows that are each drawn once an epoch; the mean over kPieces pieces is within a few thousandths
/// of the expectation.
double StageCost::expected_bucketed(const std::vector<std::pair<int64_t, int64_t>>& lengths, double positions, int64_t total,
                                    int64_t documents, const TrainOptions& train) const {
  constexpr int64_t kPieces = 200;
  std::vector<int64_t> deck;  // a row is drawn once an epoch
  deck.reserve(static_cast<size_t>(total));
  for (const auto& [length, count] : lengths) deck.insert(deck.end(), static_cast<size_t>(count), length);
  SplitMix64 draw(1);
  size_t drawn = 0;
  const auto row_length = [&] {
    if (drawn == deck.size()) drawn = 0;
    std::swap(deck[drawn], deck[drawn + draw.below(deck.size() - drawn)]);
    return deck[drawn++];
  };
  const std::vector<int64_t> parts = part_sizes(train.batch, train.accumulate);
  const double real = mean_length(lengths);
  double sum = 0;
  std::vector<int64_t> piece(static_cast<size_t>(train.batch * train.bucket_batches));
  for (int64_t k = 0; k < kPieces; ++k) {
    for (int64_t& length : piece) {
      length = row_length();
      for (int64_t d = 1; d < documents; ++d) length = std::max(length, row_length());
    }
    std::sort(piece.begin(), piece.end());
    for (size_t first = 0, i = 0; first < piece.size(); first += static_cast<size_t>(parts[i]), i = (i + 1) % parts.size()) {
      const auto rows = static_cast<size_t>(parts[i]);
      const int64_t longest = piece[first + rows - 1];
      double mean = 0;  // of the part: a bucket of short rows has fewer positions that count
      for (size_t r = first; r < first + rows; ++r) mean += static_cast<double>(piece[r]) / static_cast<double>(rows);
      sum += training(longest, parts[i] * documents, answered_share(documents == 1 ? positions * mean / real : positions, longest));
    }
  }
  return sum / static_cast<double>(kPieces * train.bucket_batches);
}

double mean_length(const std::vector<std::pair<int64_t, int64_t>>& lengths) {
  double sum = 0, count = 0;
  for (const auto& [length, n] : lengths) {
    sum += static_cast<double>(length) * static_cast<double>(n);
    count += static_cast<double>(n);
  }
  return count == 0 ? 0 : sum / count;
}

std::vector<int64_t> part_sizes(int64_t batch, int64_t accumulate) {
  if (accumulate < 1 || accumulate > batch) throw Error("a batch of {} cannot be computed in {} parts", batch, accumulate);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < accumulate; ++i) sizes.push_back((i + 1) * batch / accumulate - i * batch / accumulate);
  return sizes;
}

}  // namespace spt::worker
