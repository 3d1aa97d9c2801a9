#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spt::protocols {

/// Updates of the warm-up: W = max(1, ceil(share * steps)).
int64_t warmup_steps(double share, int64_t steps);

/// Factor of every learning rate at update `step` = 0 .. steps-1 of a stage; W = `warmup` >= 0.
///
///   cosine           (s + 1)/W for s < W, then (1 + cos(pi (s - W)/(steps - W)))/2       (definitions.md 4)
///   constant         (s + 1)/W for s < W, then 1
///   constant_warmup  s/W for s < W, then 1: published, its first update has learning rate 0 (never-from-scratch.md 4)
///
/// A pure function: nothing is kept between steps, so a resumed run needs no state of it.
/// Errors: Error for an unknown name, with the known ones.
double schedule_factor(const std::string& name, int64_t step, int64_t steps, int64_t warmup);

const std::vector<std::string>& schedule_names();

}  // namespace spt::protocols
