#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spt {

/// A small generator for draws outside LibTorch: splitmix64, equal on every machine. Meets UniformRandomBitGenerator.
class SplitMix64 {
 public:
  using result_type = uint64_t;
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n);                                                    ///< uniform in [0, n) without bias; n > 0
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }  ///< in [0, 1)

 private:
  uint64_t state_;
};

/// A named stream: every draw is a function of (seed, stream, who), never of what was drawn before.
class Stream {
 public:
  Stream(uint64_t seed, std::string_view name);
  uint64_t seed(std::string_view who) const;        ///< 64-bit seed for `who`, such as a tensor's name
  uint64_t seed(uint64_t a, uint64_t b = 0) const;  ///< ... or such as (epoch, example id); cheap: no hashing
  SplitMix64 generator(uint64_t a, uint64_t b = 0) const { return SplitMix64(seed(a, b)); }
  std::vector<int64_t> permutation(int64_t n, uint64_t who) const;  ///< of 0..n-1

 private:
  uint64_t base_;
};

/// The named streams of a job. Names: init, order, mask, dropout, subset, split.
class Rng {
 public:
  /// `reseeded`: seeds of single streams that differ from `seed` (matrix: streams.init = 7).
  explicit Rng(uint64_t seed, std::map<std::string, uint64_t> reseeded = {}) : seed_(seed), reseeded_(std::move(reseeded)) {}
  Stream stream(std::string_view name) const;
  static const std::vector<std::string>& names();

 private:
  uint64_t seed_;
  std::map<std::string, uint64_t> reseeded_;
};

/// torch.randperm(n) of a CPU generator with this seed (MT19937), without LibTorch: the published splits.
std::vector<int64_t> torch_randperm(int64_t n, uint32_t seed);

}  // namespace spt
