#include "harness/worker/prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>

#include "harness/base/error.h"
#include "tests/worker/doubles.h"

namespace spt::worker {
namespace {

Parts numbered(int64_t step) {
  protocols::Prepared prepared;
  prepared.count = step;
  return {prepared};
}

TEST(Sampler, EveryEpochIsAnotherPermutation) {
  const Sampler sampler(10, Stream(1, "order"));
  std::vector<std::vector<int64_t>> epochs;
  for (int64_t e = 0; e < 3; ++e) {
    Sampler::Pick pick = sampler.pick(10 * e, 10);
    EXPECT_EQ(pick.epochs, std::vector<uint64_t>(10, e));
    epochs.push_back(pick.indices);
    std::sort(pick.indices.begin(), pick.indices.end());
    EXPECT_EQ(pick.indices[9], 9);
    EXPECT_EQ(std::set<int64_t>(pick.indices.begin(), pick.indices.end()).size(), 10u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(Sampler, ABatchIsAWindowOfTheStreamWhereverItBegins) {
  const Sampler sampler(7, Stream(1, "order"));
  const Sampler::Pick whole = sampler.pick(0, 35);
  for (int64_t first = 0; first < 30; ++first) {
    const Sampler::Pick part = Sampler(7, Stream(1, "order")).pick(first, 5);
    EXPECT_TRUE(std::equal(part.indices.begin(), part.indices.end(), whole.indices.begin() + first)) << first;
    EXPECT_TRUE(std::equal(part.epochs.begin(), part.epochs.end(), whole.epochs.begin() + first)) << first;
  }
  EXPECT_EQ(sampler.pick(3, 20).epochs.back(), 3u);  // a batch of almost three epochs
}

TEST(Sampler, AnotherSeedGivesAnotherOrder) {
  EXPECT_NE(Sampler(50, Stream(1, "order")).pick(0, 50).indices, Sampler(50, Stream(2, "order")).pick(0, 50).indices);
}

TEST(Sampler, BucketsChangeTheBatchesOfAPieceButNotWhatIsInIt) {
  const auto length = [](int64_t i) { return 3 + i % 7; };
  const int64_t batch = 4, batches = 5, size = batch * batches;
  const Sampler plain(50, Stream(1, "order")), bucketed(50, Stream(1, "order"), {batch, batches, length});
  double padded_plain = 0, padded = 0;
  for (int64_t piece = 0; piece < 12; ++piece) {
    std::multiset<std::pair<uint64_t, int64_t>> wanted, seen;
    const Sampler::Pick all = plain.pick(piece * size, size);
    for (size_t i = 0; i < all.indices.size(); ++i) wanted.emplace(all.epochs[i], all.indices[i]);
    std::vector<int64_t> longest;
    for (int64_t b = 0; b < batches; ++b) {
      const Sampler::Pick pick = bucketed.pick(piece * size + b * batch, batch);
      longest.push_back(0);
      int64_t longest_plain = 0;
      for (int64_t i = 0; i < batch; ++i) {
        seen.emplace(pick.epochs[i], pick.indices[i]);
        longest.back() = std::max(longest.back(), length(pick.indices[i]));
        longest_plain = std::max(longest_plain, length(all.indices[b * batch + i]));
      }
      padded += static_cast<double>(longest.back());
      padded_plain += static_cast<double>(longest_plain);
    }
    EXPECT_EQ(seen, wanted) << piece;
    if (piece == 0) {
      EXPECT_FALSE(std::is_sorted(longest.begin(), longest.end())) << "short batches first would be a curriculum";
    }
  }
  EXPECT_LT(padded, 0.85 * padded_plain);
}

TEST(Sampler, ABucketedBatchFollowsFromItsStepAlone) {
  const Sampler::Buckets buckets{4, 5, [](int64_t i) { return i % 7; }};
  const Sampler whole(50, Stream(1, "order"), buckets);
  for (const int64_t step : {93, 2, 40}) {
    const Sampler fresh(50, Stream(1, "order"), buckets);
    const Sampler::Pick a = whole.pick(4 * step, 4), front = fresh.pick(4 * step, 1), back = fresh.pick(4 * step + 1, 3);  // in parts
    EXPECT_EQ(a.indices[0], front.indices[0]);
    EXPECT_TRUE(std::equal(back.indices.begin(), back.indices.end(), a.indices.begin() + 1));
  }
  EXPECT_THROW(whole.pick(2, 4), std::logic_error);
}

class PrefetchThreads : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, PrefetchThreads, testing::Values(0, 1, 4));

TEST_P(PrefetchThreads, HandsOutEveryStepInOrder) {
  Prefetcher prefetch(3, 60, GetParam(), numbered);
  for (int64_t step = 3; step < 60; ++step) EXPECT_EQ(prefetch.next().front().count, step);
  EXPECT_THROW(prefetch.next(), std::logic_error);
}

TEST_P(PrefetchThreads, AnExceptionArrivesAtItsStep) {
  Prefetcher prefetch(0, 10, GetParam(), [](int64_t step) -> Parts {
    if (step == 4) throw DataError("example {} is broken", step);
    return numbered(step);
  });
  for (int64_t step = 0; step < 4; ++step) EXPECT_EQ(prefetch.next().front().count, step);
  EXPECT_THROW(prefetch.next(), DataError);
}

TEST_P(PrefetchThreads, WorksNoFurtherAheadThanItsQueueAndStopsPromptly) {
  std::atomic<int64_t> made = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    Prefetcher prefetch(0, 1'000'000, GetParam(), [&](int64_t step) {
      ++made;
      return numbered(step);
    });
    for (int i = 0; i < 5; ++i) prefetch.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_LE(made, GetParam() == 0 ? 5 : 5 + GetParam() + Prefetcher::kSpare);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Prefetcher, ThreadsGiveTheBatchesThatNoThreadGives) {
  const auto objective = protocols::make_objective("masked", {{"ratio", 0.4}}, test::tiny_facts("classification"), {});
  const test::TinyDataset data("classification", 0, 40);
  const Sampler sampler(40, Stream(9, "order"));
  const Stream mask(9, "mask");
  const auto make = [&](int64_t step) -> Parts {
    const Sampler::Pick pick = sampler.pick(16 * step, 16);
    return {objective->prepare(data.batch(pick.indices), std::span<const uint64_t>(pick.epochs), mask)};
  };
  Prefetcher none(0, 20, 0, make), one(0, 20, 1, make), four(0, 20, 4, make);
  for (int64_t step = 0; step < 20; ++step) {
    const protocols::Prepared a = none.next().front();
    for (Prefetcher* other : {&one, &four}) {
      const protocols::Prepared b = other->next().front();
      EXPECT_TRUE(torch::equal(a.input.tokens, b.input.tokens));
      EXPECT_TRUE(torch::equal(a.input.positions, b.input.positions));
      EXPECT_TRUE(torch::equal(a.target, b.target));
      EXPECT_TRUE(torch::equal(a.example_ids, b.example_ids));
    }
  }
}

}  // namespace
}  // namespace spt::worker
