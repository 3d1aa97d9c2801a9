#include "protocols/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

using Evaluations = std::span<const double>;

constexpr double kPlateauThreshold = 1e-4, kSmallestPlateauChange = 1e-8;

double share_of(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

double rising(const Schedule& schedule, int64_t step) { return step < schedule.warmup ? share_of(step + 1, schedule.warmup) : 1.0; }

int64_t falling_steps(const Schedule& schedule) { return std::max<int64_t>(1, schedule.steps - schedule.warmup); }

double half_cosine(const Schedule& schedule, int64_t step) {
  return 0.5 *
         (1.0 + std::cos(std::numbers::pi * static_cast<double>(step - schedule.warmup) / static_cast<double>(falling_steps(schedule))));
}

double falling(const Schedule& schedule, int64_t step) { return std::max(0.0, share_of(schedule.steps - step, falling_steps(schedule))); }

double constant(const Schedule& schedule, int64_t step, Evaluations) { return rising(schedule, step); }

double cosine(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? rising(schedule, step) : half_cosine(schedule, std::min(step, schedule.steps));
}

double linear(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? rising(schedule, step) : falling(schedule, step);
}

double inverse_sqrt(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? rising(schedule, step) : std::sqrt(share_of(std::max<int64_t>(1, schedule.warmup), step + 1));
}

double drops(const Schedule& schedule, int64_t step, Evaluations) {
  SPT_CHECK(schedule.step_size >= 1, "drops every {} steps", schedule.step_size);
  return rising(schedule, step) * std::pow(schedule.gamma, static_cast<double>(step / schedule.step_size));
}

double multistep(const Schedule& schedule, int64_t step, Evaluations) {
  const auto passed = std::count_if(schedule.milestones.begin(), schedule.milestones.end(), [&](int64_t at) { return at <= step; });
  return rising(schedule, step) * std::pow(schedule.gamma, static_cast<double>(passed));
}

double plateau(const Schedule& schedule, int64_t step, Evaluations evaluations) {
  return schedule.lr == 0 ? rising(schedule, step) : rising(schedule, step) * (plateau_rate(schedule, evaluations) / schedule.lr);
}

double published_rising(const Schedule& schedule, int64_t step) { return share_of(step, std::max<int64_t>(1, schedule.warmup)); }

double constant_warmup(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? published_rising(schedule, step) : 1.0;
}

double cosine_warmup(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? published_rising(schedule, step) : std::max(0.0, half_cosine(schedule, step));
}

double linear_warmup(const Schedule& schedule, int64_t step, Evaluations) {
  return step < schedule.warmup ? published_rising(schedule, step) : falling(schedule, step);
}

struct NamedSchedule {
  const char* name;
  double (*factor)(const Schedule& schedule, int64_t step, Evaluations evaluations);
};

constexpr NamedSchedule kSchedules[] = {
    {"constant", constant},
    {"constant_warmup", constant_warmup},
    {"cosine", cosine},
    {"cosine_warmup", cosine_warmup},
    {"inverse_sqrt", inverse_sqrt},
    {"linear", linear},
    {"linear_warmup", linear_warmup},
    {"multistep", multistep},
    {"plateau", plateau},
    {"step", drops},
};

}  // namespace

int64_t warmup_steps(double share, int64_t steps) {
  // Half a millionth of a step below, so that a share such as 0.1, which binary cannot hold, does not lift a whole number.
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(steps) - 5e-7)));
}

int64_t share_steps(double share, int64_t steps) { return std::llround(share * static_cast<double>(steps)); }

double schedule_factor(const Schedule& schedule, int64_t step, std::span<const double> evaluations) {
  SPT_CHECK(step >= 0 && schedule.steps >= 1 && schedule.warmup >= 0, "step {} of {}, warm-up {}", step, schedule.steps, schedule.warmup);
  for (const NamedSchedule& named : kSchedules)
    if (schedule.name == named.name) return named.factor(schedule, step, evaluations);
  throw Error("{}", unknown_name("schedule", schedule.name, schedule_names()));
}

double plateau_rate(const Schedule& schedule, std::span<const double> evaluations) {
  const bool higher = schedule.higher_is_better;
  double best = higher ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  double rate = schedule.lr;
  int64_t worse = 0;
  for (const double value : evaluations) {
    const bool better = higher ? value > best * (1 + kPlateauThreshold) : value < best * (1 - kPlateauThreshold);
    if (better) best = value;
    worse = better ? 0 : worse + 1;
    if (worse <= schedule.patience) continue;
    worse = 0;
    if (rate - rate * schedule.gamma > kSmallestPlateauChange) rate *= schedule.gamma;
  }
  return rate;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const NamedSchedule& schedule : kSchedules) names.emplace_back(schedule.name);
    return names;
  }();
  return kNames;
}

}  // namespace spt::protocols
