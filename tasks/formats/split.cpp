#include "tasks/formats/split.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

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

/// How many of n scikit-learn holds out. Errors: Error if that is none or all of them.
int64_t held_out(int64_t n, double share) {
  if (!(share > 0 && share < 1)) throw Error("a test share of {} is not in (0, 1)", share);
  const auto count = static_cast<int64_t>(std::ceil(share * static_cast<double>(n)));
  if (count < 1 || count >= n) throw Error("{} examples are too few for a test share of {}", n, share);
  return count;
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
  std::transform(members.begin(), members.end(), counts.begin(),
                 [](const auto& of_class) { return static_cast<int64_t>(of_class.size()); });
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

std::vector<int64_t> numpy_permutation(int64_t n, uint32_t seed) {
  SPT_CHECK(n >= 0 && n <= int64_t{1} << 32, "permutation of {}", n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 draw(seed);  // RandomState seeds its MT19937 as the standard does
  for (int64_t i = n - 1; i > 0; --i) {
    const auto mask = static_cast<uint32_t>((uint64_t{1} << std::bit_width(static_cast<uint64_t>(i))) - 1);
    uint32_t j = draw() & mask;
    while (j > i) j = draw() & mask;
    std::swap(order[i], order[j]);
  }
  return order;
}

std::vector<int64_t> train_fraction(std::span<const int64_t> indices, double fraction, uint32_t seed) {
  const auto all = static_cast<double>(indices.size());
  const double wanted = fraction > 1 ? fraction : fraction * all;
  if (!(wanted >= 0 && wanted <= all)) throw Error("a train fraction of {} is not possible with {} examples", fraction, indices.size());
  std::vector<int64_t> chosen = numpy_permutation(static_cast<int64_t>(indices.size()), seed);
  chosen.resize(static_cast<size_t>(wanted));
  for (int64_t& i : chosen) i = indices[i];
  return chosen;
}

ThreeSplits two_stage_split(int64_t n, double test_size, double second_test_size, uint32_t seed) {
  const int64_t n_outer = held_out(n, test_size);
  const int64_t n_test = held_out(n_outer, second_test_size);
  const std::vector<int64_t> first = numpy_permutation(n, seed);
  const std::vector<int64_t> second = numpy_permutation(n_outer, seed + 1);
  ThreeSplits splits;
  splits.train.assign(first.begin() + n_outer, first.end());
  for (int64_t i = 0; i < n_outer; ++i) (i < n_test ? splits.test : splits.validation).push_back(first[second[i]]);
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
