#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/base/rng.h"

namespace spt::formats {

/// Two disjoint lists of indices that together are 0..n-1.
struct TwoSplits {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
};

/// torch.utils.data.random_split with a generator of this seed: consecutive pieces of torch.randperm(n).
///
/// Errors: SPT_CHECK that the sizes add up to n.
/// Source: the published splits (arXiv:2310.02980 and its code).
std::vector<std::vector<int64_t>> random_split(int64_t n, std::span<const int64_t> sizes, uint32_t seed);

/// ... into train, int(n * (1 - fraction)) of them as Python computes it, and validation, the rest.
TwoSplits random_split(int64_t n, double validation_fraction, uint32_t seed);

/// Keeps the shares of the classes: each class gives n_validation * (its share) of its examples, rounded by largest remainder (ties to
/// the smaller label) so that they add up; which ones is drawn per class. Both lists are in ascending order.
///
/// Random: Stream(split_seed, "split"), who = label.
/// Errors: Error if n_validation is negative or larger than the number of labels.
TwoSplits stratified_split(std::span<const uint8_t> labels, int64_t n_validation, uint64_t split_seed);

/// numpy.random.RandomState(seed).permutation(n): for i = n-1 .. 1 swap i with j <= i, drawn from MT19937 by masked rejection of 32-bit
/// draws.
///
/// Errors: SPT_CHECK that 0 <= n <= 2^32.
/// Source: the published splits (arXiv:2310.02980 and its code); must equal the reference cases split_fraction* and split_two_stage.
std::vector<int64_t> numpy_permutation(int64_t n, uint32_t seed);

/// The published subsets of train: RandomState(seed).permutation(indices)[:int(fraction * n)], nested for one seed; a fraction above 1 is a
/// number of examples.
///
/// Errors: Error if the fraction is negative or no number, or asks for more examples than there are.
std::vector<int64_t> train_fraction(std::span<const int64_t> indices, double fraction, uint32_t seed);

struct ThreeSplits {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
  std::vector<int64_t> test;
};

/// scikit-learn's train_test_split twice, as published for BIDMC: the first ceil(test_size * n) of permutation(n) of `seed` are held out,
/// train is the rest in its order; of the held-out ones, permuted with seed + 1, the first ceil(second_test_size * their number) are test.
///
/// Errors: Error if a share is not in (0, 1) or leaves a part empty.
ThreeSplits two_stage_split(int64_t n, double test_size, double second_test_size, uint32_t seed);

/// The first n of one permutation of `indices`, so that subsets are nested; n = 0 or all of them gives `indices` unchanged.
///
/// Random: `subset`, the job's stream of that name.
/// Errors: Error if n is negative or larger than the number of indices.
std::vector<int64_t> subset(std::span<const int64_t> indices, int64_t n, const Stream& subset);

}  // namespace spt::formats
