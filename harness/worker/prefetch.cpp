#include "harness/worker/prefetch.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>

#include "harness/base/error.h"

namespace spt::worker {

Sampler::Permutation Sampler::permutation(uint64_t epoch) const {
  constexpr size_t kKept = 4;  // threads work ahead by a few batches: at most the ends of two epochs
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(epoch);
  if (found != kept_.end()) return found->second;
  if (kept_.size() == kKept) kept_.erase(kept_.begin());
  return kept_.emplace(epoch, std::make_shared<const std::vector<int64_t>>(order_.permutation(size_, epoch))).first->second;
}

Sampler::Pick Sampler::pick(int64_t first, int64_t batch) const {
  if (buckets_.batches == 0) return shuffled(first, batch);
  SPT_CHECK(first / buckets_.batch == (first + batch - 1) / buckets_.batch, "positions {} .. {} lie in two batches of {}", first,
            first + batch - 1, buckets_.batch);
  const int64_t size = buckets_.batch * buckets_.batches;
  const Piece all = piece(first / size);
  const auto begin = static_cast<std::ptrdiff_t>(first % size), end = begin + static_cast<std::ptrdiff_t>(batch);
  return {{all->indices.begin() + begin, all->indices.begin() + end}, {all->epochs.begin() + begin, all->epochs.begin() + end}};
}

Sampler::Piece Sampler::piece(int64_t number) const {
  constexpr size_t kKept = 4;
  const std::lock_guard lock(pieces_mutex_);
  const auto found = pieces_.find(number);
  if (found != pieces_.end()) return found->second;
  const int64_t size = buckets_.batch * buckets_.batches;
  const Pick plain = shuffled(number * size, size);
  std::vector<std::pair<int64_t, size_t>> by_length;
  for (size_t i = 0; i < plain.indices.size(); ++i) by_length.emplace_back(buckets_.length(plain.indices[i]), i);
  std::sort(by_length.begin(), by_length.end());
  Pick sorted;
  for (const int64_t b : Stream(order_.seed("buckets"), "order").permutation(buckets_.batches, static_cast<uint64_t>(number)))
    for (int64_t i = b * buckets_.batch; i < (b + 1) * buckets_.batch; ++i) {
      const size_t from = by_length[static_cast<size_t>(i)].second;
      sorted.indices.push_back(plain.indices[from]);
      sorted.epochs.push_back(plain.epochs[from]);
    }
  if (pieces_.size() == kKept) pieces_.erase(pieces_.begin());
  return pieces_.emplace(number, std::make_shared<const Pick>(std::move(sorted))).first->second;
}

Sampler::Pick Sampler::shuffled(int64_t first, int64_t batch) const {
  SPT_CHECK(size_ > 0, "a sampler over nothing");
  Pick pick;
  pick.indices.reserve(batch);
  pick.epochs.reserve(batch);
  Permutation order;
  for (int64_t at = first; at < first + batch; ++at) {
    const uint64_t epoch = static_cast<uint64_t>(at / size_);
    if (!order || at % size_ == 0) order = permutation(epoch);
    pick.indices.push_back((*order)[at % size_]);
    pick.epochs.push_back(epoch);
  }
  return pick;
}

Prefetcher::Prefetcher(int64_t first, int64_t last, int64_t threads, std::function<Parts(int64_t)> make)
    : last_(last), make_(std::move(make)), next_(first), claimed_(first), ahead_(threads + kSpare) {
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Prefetcher::Made Prefetcher::make_one(int64_t step) const {
  try {
    return {make_(step), nullptr};
  } catch (...) {  // thrown again by next(), in the consumer's thread
    return {{}, std::current_exception()};
  }
}

void Prefetcher::work() {
  at::get_num_threads();   // LibTorch sets a thread's OpenMP width at its first question,
  omp_set_num_threads(1);  // so that this stands: no second team of threads beside the one that computes
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] { return stopping_ || claimed_ >= last_ || claimed_ < next_ + ahead_; });
    if (stopping_ || claimed_ >= last_) return;
    const int64_t step = claimed_++;
    lock.unlock();
    Made made = make_one(step);
    lock.lock();
    ready_.emplace(step, std::move(made));
    arrived_.notify_one();
  }
}

Parts Prefetcher::next() {
  SPT_CHECK(next_ < last_, "asked for step {} of {}", next_, last_);
  if (threads_.empty()) return make_(next_++);
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return ready_.contains(next_); });
  Made made = std::move(ready_.extract(next_).mapped());
  ++next_;
  const bool refill = claimed_ - next_ <= ahead_ / 2;
  lock.unlock();
  if (refill) room_.notify_all();  // seldom: a thread that wakes up may take this one's core
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.parts);
}

}  // namespace spt::worker
