#include "results/record.h"

#include <array>
#include <string_view>

namespace spt::results {
namespace {

constexpr std::array<std::string_view, 8> kFailureNames = {"diverged", "oom", "timeout", "hung", "crashed", "killed", "data", "blocked"};

}  // namespace

std::string_view failure_name(Failure failure) { return kFailureNames.at(static_cast<size_t>(failure)); }

std::optional<Failure> failure_from_name(std::string_view name) {
  for (size_t i = 0; i < kFailureNames.size(); ++i)
    if (kFailureNames[i] == name) return static_cast<Failure>(i);
  return std::nullopt;
}

}  // namespace spt::results
