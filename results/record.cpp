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

std::string_view matched_basis(std::string_view arm) {
  for (const size_t at = arm.rfind('@'); const std::string_view basis : {"examples", "tokens", "flops"}) {
    const size_t colon = at == std::string_view::npos ? at : arm.find(':', at);
    if (colon == std::string_view::npos) break;
    const std::string_view rest = arm.substr(colon + 1);
    if (rest == basis || rest.starts_with(std::string(basis) + ":")) return basis;
  }
  return "steps";
}

}  // namespace spt::results
