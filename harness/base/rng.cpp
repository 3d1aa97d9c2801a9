#include "harness/base/rng.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "harness/base/error.h"
#include "harness/base/hash.h"

namespace spt {
namespace {

uint64_t mix(uint64_t z) { return SplitMix64(z)(); }

}  // namespace

uint64_t SplitMix64::below(uint64_t n) {
  SPT_CHECK(n > 0, "below(0)");
  const uint64_t limit = max() - max() % n;
  uint64_t x = (*this)();
  while (x >= limit) x = (*this)();
  return x % n;
}

Stream::Stream(uint64_t seed, std::string_view name) : base_(hash64(fmt::format("spt-stream/{}/{}", name, seed))) {}

uint64_t Stream::seed(std::string_view who) const { return mix(base_ ^ hash64(who)); }

uint64_t Stream::seed(uint64_t a, uint64_t b) const { return mix(mix(base_ ^ a) + 0x632be59bd9b4e019 * (b + 1)); }

std::vector<int64_t> Stream::permutation(int64_t n, uint64_t who) const {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  SplitMix64 draw = generator(who);
  for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[draw.below(i + 1)]);
  return order;
}

const std::vector<std::string>& Rng::names() {
  static const std::vector<std::string> kNames = {"init", "order", "mask", "dropout", "subset", "split"};
  return kNames;
}

Stream Rng::stream(std::string_view name) const {
  SPT_CHECK(std::find(names().begin(), names().end(), name) != names().end(), "no random stream is named '{}'", name);
  const auto own = reseeded_.find(std::string(name));
  return Stream(own == reseeded_.end() ? seed_ : own->second, name);
}

std::vector<int64_t> torch_randperm(int64_t n, uint32_t seed) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 draw(seed);
  for (int64_t i = 0; i + 1 < n; ++i) std::swap(order[i], order[i + static_cast<int64_t>(draw() % (n - i))]);
  return order;
}

}  // namespace spt
