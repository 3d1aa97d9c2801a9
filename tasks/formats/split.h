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
/// Source: the published splits (specs/never-from-scratch.md 2).
std::vector<std::vector<int64_t>> random_split(int64_t n, std::span<const int64_t> sizes, uint32_t seed);

/// ... into train, int(n * (1 - fraction)) of them as Python computes it, and validation, the rest.
TwoSplits random_split(int64_t n, double validation_fraction, uint32_t seed);

/// Keeps the shares of the classes: each class gives n_validation * (its share) of its examples, rounded by largest remainder (ties to
/// the smaller label) so that they add up; which ones is drawn per class. Both lists are in ascending order.
///
/// Random: Stream(split_seed, "split"), who = label.
/// Errors: Error if n_validation is negative or larger than the number of labels.
TwoSplits stratified_split(std::span<const uint8_t> labels, int64_t n_validation, uint64_t split_seed);

/// The first n of one permutation of `indices`, so that subsets are nested; n = 0 or all of them gives `indices` unchanged.
///
/// Random: `subset`, the job's stream of that name.
/// Errors: Error if n is negative or larger than the number of indices.
std::vector<int64_t> subset(std::span<const int64_t> indices, int64_t n, const Stream& subset);

}  // namespace spt::formats
