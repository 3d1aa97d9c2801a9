#pragma once

#include <string>
#include <vector>

namespace spt::worker {

/// One check of `spt-bench-worker selftest`.
struct SelfCheck {
  std::string name;
  bool passed = false;
  std::string detail;  ///< what was measured, or why it failed
};

/// Executes on `device` what training needs: each kernel agrees with its slow twin; each registered architecture does a forward and
/// backward pass that stays finite, repeats bit for bit, and predicts a row alone as it does among others.
std::vector<SelfCheck> selftest(const std::string& device, int64_t threads);

}  // namespace spt::worker
