#include "harness/base/error.h"

#include <algorithm>
#include <numeric>

namespace spt {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string unknown_name(std::string_view what, std::string_view name, std::span<const std::string> known) {
  std::string message = fmt::format("unknown {} '{}'", what, name);
  const auto near = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  if (near != known.end() && edit_distance(name, *near) <= std::max<size_t>(2, near->size() / 3))
    message += fmt::format("; did you mean '{}'?", *near);
  else message += ';';
  return message + fmt::format(" known: {}", known.empty() ? "(none)" : fmt::format("{}", fmt::join(known, ", ")));
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw std::logic_error(
      fmt::format("{}:{}: check failed: {}: {} (this is a defect of spt-bench; please report it)", file, line, condition, message));
}

}  // namespace spt
