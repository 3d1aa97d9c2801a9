#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spt::schedule {

/// A place where one stage runs at a time.
struct Slot {
  std::string device = "cpu";  ///< cpu | cuda
  int gpu = -1;                ///< index of the GPU the worker is shown, -1 on cpu
  int64_t threads = 1;
  std::string name() const;  ///< cpu:0 is printed as "cpu", a GPU as "cuda:1"
};

struct SlotOptions {
  int64_t slots = 0;           ///< CPU slots; 0: cores / threads
  int64_t threads = 1;         ///< CPU threads a slot
  std::string device = "cpu";  ///< cpu | cuda (every GPU) | cuda:0,1
  int64_t jobs_per_gpu = 1;
};

/// Errors: Error for a device text that is none, a GPU that is not there, or more threads than `cores` (oversubscription makes every job
/// slower).
std::vector<Slot> make_slots(const SlotOptions& options, int64_t cores, int64_t gpus);

int64_t available_cores();  ///< that this process may run on
int64_t available_gpus();   ///< that the NVIDIA driver answers for; 0 without one

}  // namespace spt::schedule
