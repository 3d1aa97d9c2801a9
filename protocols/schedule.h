#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spt::protocols {

/// Updates of the warm-up: W = max(1, ceil(share * steps)).
int64_t warmup_steps(double share, int64_t steps);

/// Updates from 0 that a share of a stage is: round(share * steps).
int64_t share_steps(double share, int64_t steps);

/// How learning rates move over a stage. With s = the update from 0, n = steps, W = warmup, r = (s + 1)/W for s < W, else 1:
///
///   constant         r
///   cosine           r for s < W, then (1 + cos(pi (s - W)/(n - W)))/2
///   linear           r for s < W, then (n - s)/(n - W)
///   inverse_sqrt     r for s < W, then sqrt(W/(s + 1))                                    (arXiv:1706.03762 5.3, peak at W)
///   step             r gamma^floor(s / step_size)
///   multistep        r gamma^(number of milestones <= s)
///   plateau          r times `plateau_rate` of the evaluations so far / lr
///   constant_warmup  s/W for s < W, then 1
///   cosine_warmup    s/W for s < W, then max(0, (1 + cos(pi p))/2), p = (s - W)/(n - W)
///   linear_warmup    s/W for s < W, then max(0, (n - s)/(n - W))
///
/// The last three are published ones, whose first update has learning rate 0 (arXiv:2310.02980 and its code; README-ssm.md). Past the end
/// (s >= n) ours stay at 0, linear_warmup too, and cosine_warmup rises again, as published.
struct Schedule {
  std::string name = "cosine";
  int64_t steps = 1;
  int64_t warmup = 0;
  double gamma = 0.1;                    ///< factor of each drop: step, multistep, plateau
  int64_t step_size = 1;                 ///< step: updates between drops, >= 1
  std::vector<int64_t> milestones = {};  ///< multistep: updates, in any order
  int64_t patience = 10;                 ///< plateau: evaluations in a row without a better one that are still borne
  bool higher_is_better = false;         ///< plateau
  double lr = 1;                         ///< plateau: the peak rate, because changes below 1e-8 are not made
};

/// Factor of every learning rate at update `step`. `evaluations`: the selection metric of those done so far, which plateau alone reads.
/// A pure function: nothing is kept between steps, so a resumed run needs no state of it but that list.
/// Errors: Error for an unknown name, with the known ones.
double schedule_factor(const Schedule& schedule, int64_t step, std::span<const double> evaluations = {});

/// Rate after `evaluations`, from schedule.lr: where more than `patience` in a row are not better than the best so far, it is multiplied by
/// gamma and the count starts again; a change of at most 1e-8 is not made. Better: > best (1 + 1e-4) where higher is better, else
/// < best (1 - 1e-4); the first is better than nothing; NaN never is.
/// Source: torch.optim.lr_scheduler.ReduceLROnPlateau, relative threshold, no cooldown.
double plateau_rate(const Schedule& schedule, std::span<const double> evaluations);

const std::vector<std::string>& schedule_names();  ///< sorted

}  // namespace spt::protocols
