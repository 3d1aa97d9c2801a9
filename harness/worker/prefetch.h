#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/base/rng.h"
#include "protocols/objective.h"

namespace spt::worker {

/// The order of training examples: permutations of 0..n-1, one an epoch, end to end. Batch k is positions [kB, (k+1)B), so it follows from
/// the step alone; a batch may span two epochs (or more, where B > n). Random: stream "order", by epoch. Safe to call from several threads
/// at once.
///
/// With buckets, each piece of bucket_batches B consecutive positions is sorted by length (equal ones keep their order) and cut into
/// batches, which then come in a drawn order: over a piece the same examples of the same epochs are seen as without buckets. Random: stream
/// "order", by piece.
class Sampler {
 public:
  struct Buckets {
    int64_t batch = 0;                             ///< B
    int64_t batches = 0;                           ///< of a piece
    std::function<int64_t(int64_t index)> length;  ///< of an example
  };
  Sampler(int64_t size, Stream order) : size_(size), order_(order) {}
  Sampler(int64_t size, Stream order, Buckets buckets) : size_(size), order_(order), buckets_(std::move(buckets)) {}

  struct Pick {
    std::vector<int64_t> indices;
    std::vector<uint64_t> epochs;  ///< of each
  };
  /// `batch` consecutive positions from `first` on; with buckets they must lie in one batch.
  Pick pick(int64_t first, int64_t batch) const;

 private:
  using Permutation = std::shared_ptr<const std::vector<int64_t>>;
  using Piece = std::shared_ptr<const Pick>;
  Permutation permutation(uint64_t epoch) const;
  Pick shuffled(int64_t first, int64_t n) const;
  Piece piece(int64_t number) const;
  const int64_t size_;
  const Stream order_;
  const Buckets buckets_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, Permutation> kept_;  ///< of the last epochs asked for
  mutable std::mutex pieces_mutex_;
  mutable std::map<int64_t, Piece> pieces_;  ///< the last ones asked for
};

/// What one update works on: the parts its batch is computed in.
using Parts = std::vector<protocols::Prepared>;

/// Makes Parts for steps first .. last-1 ahead of their use, in background threads, and hands them out in order; 0 threads: when asked for.
/// The number of threads changes nothing but time: what is made is a function of the step. An exception in a thread is thrown by next() at
/// its step. The destructor stops promptly: it waits at most for the parts being made.
class Prefetcher {
 public:
  /// Steps that may be ready beside one that each thread makes: a thread that is late for some steps is not waited for.
  static constexpr int64_t kSpare = 7;

  /// `make` is called from several threads at once, and must be a function of its argument.
  Prefetcher(int64_t first, int64_t last, int64_t threads, std::function<Parts(int64_t)> make);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  Parts next();  ///< for the next step. Errors: whatever make threw; SPT_CHECK past the last step

 private:
  struct Made {
    Parts parts;
    std::exception_ptr error;
  };
  void work();
  Made make_one(int64_t step) const;

  const int64_t last_;
  const std::function<Parts(int64_t)> make_;
  int64_t next_;     ///< step of the next answer
  int64_t claimed_;  ///< first step that no thread has taken
  int64_t ahead_;    ///< steps that may be claimed before they are asked for
  bool stopping_ = false;
  std::map<int64_t, Made> ready_;
  std::mutex mutex_;
  std::condition_variable room_, arrived_;  ///< for the threads; for next()
  std::vector<std::thread> threads_;
};

}  // namespace spt::worker
