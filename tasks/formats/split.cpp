#include "tasks/formats/split.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

using Counts = std::array<int64_t, 256>;

/// Seats of a parliament: n shared out in proportion to `counts`, exactly n of them.
Counts largest_remainder(const Counts& counts, int64_t n, int64_t total) {
  Counts shares{};
  std::array<int, 256> order;
  std::iota(order.begin(), order.end(), 0);
  int64_t given = 0;
  for (size_t c = 0; c < counts.size(); ++c) given += shares[c] = counts[c] * n / total;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return counts[a] * n % total > counts[b] * n % total; });
  for (int64_t i = 0; given < n; ++i, ++given) ++shares[order[i]];
  return shares;
}

}  // namespace

std::vector<std::vector<int64_t>> random_split(int64_t n, std::span<const int64_t> sizes, uint32_t seed) {
  SPT_CHECK(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == n, "sizes do not add up to {}", n);
  const std::vector<int64_t> order = torch_randperm(n, seed);
  std::vector<std::vector<int64_t>> pieces;
  auto begin = order.begin();
  for (const int64_t size : sizes) {
    pieces.emplace_back(begin, begin + size);
    begin += size;
  }
  return pieces;
}

TwoSplits random_split(int64_t n, double validation_fraction, uint32_t seed) {
  if (!(validation_fraction >= 0 && validation_fraction <= 1)) throw Error("validation fraction {} is not in [0, 1]", validation_fraction);
  const auto train = static_cast<int64_t>(static_cast<double>(n) * (1.0 - validation_fraction));
  auto pieces = random_split(n, std::array{train, n - train}, seed);
  return {std::move(pieces[0]), std::move(pieces[1])};
}

TwoSplits stratified_split(std::span<const uint8_t> labels, int64_t n_validation, uint64_t split_seed) {
  const auto n = static_cast<int64_t>(labels.size());
  if (n_validation < 0 || n_validation > n) throw Error("validation split of {} examples out of {}", n_validation, n);
  std::array<std::vector<int64_t>, 256> members;
  for (int64_t i = 0; i < n; ++i) members[labels[i]].push_back(i);
  Counts counts;
  std::transform(members.begin(), members.end(), counts.begin(), [](const auto& of_class) { return static_cast<int64_t>(of_class.size()); });
  const Counts shares = n > 0 ? largest_remainder(counts, n_validation, n) : Counts{};
  const Stream split(split_seed, "split");
  TwoSplits splits;
  for (size_t c = 0; c < members.size(); ++c) {
    const std::vector<int64_t> order = split.permutation(counts[c], c);
    for (int64_t i = 0; i < counts[c]; ++i) (i < shares[c] ? splits.validation : splits.train).push_back(members[c][order[i]]);
  }
  std::sort(splits.train.begin(), splits.train.end());
  std::sort(splits.validation.begin(), splits.validation.end());
  return splits;
}

std::vector<int64_t> subset(std::span<const int64_t> indices, int64_t n, const Stream& subset) {
  const auto all = static_cast<int64_t>(indices.size());
  if (n < 0 || n > all) throw Error("a subset of {} examples is asked for, there are {}", n, all);
  if (n == 0 || n == all) return {indices.begin(), indices.end()};
  std::vector<int64_t> chosen = subset.permutation(all, 0);
  chosen.resize(static_cast<size_t>(n));
  for (int64_t& i : chosen) i = indices[i];
  return chosen;
}

}  // namespace spt::formats
