#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <string>

namespace spt::worker {

/// Allocator thresholds (large blocks stay with the process: 5-16 % of a step, performance-notes.md), and first choice of the kernel's
/// out-of-memory killer, so that it never picks the supervisor. Call first in main().
void prepare_process();

/// Seconds since this process was started.
double process_age_s();

/// Threads, deterministic algorithms, no TF32; loads LibTorch's CUDA half for "cuda" alone. The device to compute on.
/// Errors: Error for an unknown device, or "cuda" where there is none.
at::Device prepare_device(const std::string& device, int64_t threads);

/// Whether this LibTorch has its CUDA half on disk; nothing is loaded.
bool has_cuda_half();

/// Peak memory of the process (bytes) since the last reset: resident on CPU, allocated on CUDA.
void reset_peak_memory(const at::Device& device);
int64_t peak_memory(const at::Device& device);

/// SIGTERM and SIGINT ask for a stop; a process that has not reached its next step 2 s later is ended by SIGALRM.
void install_stop_signals();
bool stop_requested();
void set_stop_requested(bool stop);  ///< what the signals set

/// Thrown at a place from which a stage can go on later.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped by a signal"; }
};

}  // namespace spt::worker
