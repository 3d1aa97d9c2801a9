#include "protocols/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/base/error.h"

namespace spt::protocols {
namespace {

double rising(int64_t step, int64_t warmup) {
  return step < warmup ? static_cast<double>(step + 1) / static_cast<double>(warmup) : 1.0;
}

double cosine(int64_t step, int64_t steps, int64_t warmup) {
  if (step < warmup) return rising(step, warmup);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * static_cast<double>(step - warmup) / static_cast<double>(steps - warmup)));
}

double constant_warmup(int64_t step, int64_t, int64_t warmup) {
  return step < warmup ? static_cast<double>(step) / static_cast<double>(warmup) : 1.0;
}

struct NamedSchedule {
  const char* name;
  double (*factor)(int64_t step, int64_t steps, int64_t warmup);
};

constexpr NamedSchedule kSchedules[] = {
    {"constant", [](int64_t step, int64_t, int64_t warmup) { return rising(step, warmup); }},
    {"constant_warmup", constant_warmup},
    {"cosine", cosine},
};

}  // namespace

int64_t warmup_steps(double share, int64_t steps) {
  // Half a millionth of a step below, so that a share such as 0.1, which binary cannot hold, does not lift a whole number.
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(steps) - 5e-7)));
}

double schedule_factor(const std::string& name, int64_t step, int64_t steps, int64_t warmup) {
  SPT_CHECK(step >= 0 && step < steps && warmup >= 0, "step {} of {}, warm-up {}", step, steps, warmup);
  for (const NamedSchedule& schedule : kSchedules)
    if (name == schedule.name) return schedule.factor(step, steps, warmup);
  throw Error("{}", unknown_name("schedule", name, schedule_names()));
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
