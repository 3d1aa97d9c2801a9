#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace spt::models {

/// One kernel against its slow twin.
struct KernelCheck {
  std::string name;
  double max_error = 0;  ///< largest |fast - slow| / largest |slow|; NaN when something was not finite
  double tolerance = 0;
  bool ok = false;
};

/// Executes each kernel once on `device`, in float64 and float32, forward and (by finite differences of the twin) backward.
std::vector<KernelCheck> run_kernel_selftests(const at::Device& device);

}  // namespace spt::models
