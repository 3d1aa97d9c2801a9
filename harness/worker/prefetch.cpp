#include "harness/worker/prefetch.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include "harness/base/error.h"

namespace spt::worker {
namespace {

constexpr int64_t kSpare = 3;  // steps ready beside those being made: a thread that is late for one step is not waited for

}  // namespace

Sampler::Permutation Sampler::permutation(uint64_t epoch) const {
  constexpr size_t kKept = 4;  // threads work ahead by a few batches: at most the ends of two epochs
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(epoch);
  if (found != kept_.end()) return found->second;
  if (kept_.size() == kKept) kept_.erase(kept_.begin());
  return kept_.emplace(epoch, std::make_shared<const std::vector<int64_t>>(order_.permutation(size_, epoch))).first->second;
}

Sampler::Pick Sampler::pick(int64_t first, int64_t batch) const {
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
  changed_.notify_all();
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
    changed_.wait(lock, [this] { return stopping_ || claimed_ >= last_ || claimed_ < next_ + ahead_; });
    if (stopping_ || claimed_ >= last_) return;
    const int64_t step = claimed_++;
    lock.unlock();
    Made made = make_one(step);
    lock.lock();
    ready_.emplace(step, std::move(made));
    changed_.notify_all();
  }
}

Parts Prefetcher::next() {
  SPT_CHECK(next_ < last_, "asked for step {} of {}", next_, last_);
  if (threads_.empty()) return make_(next_++);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.contains(next_); });
  Made made = std::move(ready_.extract(next_).mapped());
  ++next_;
  lock.unlock();
  changed_.notify_all();
  if (made.error) std::rethrow_exception(made.error);
  return std::move(made.parts);
}

}  // namespace spt::worker
