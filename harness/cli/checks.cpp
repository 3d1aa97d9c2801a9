#include "harness/cli/checks.h"

#include <fmt/format.h>

#include <cmath>

namespace spt::cli {
namespace {

CLI::Validator number_that(const char* wanted, bool (*holds)(double)) {
  return CLI::Validator(
      [wanted, holds](std::string& text) {
        double number = 0;
        const bool read = CLI::detail::lexical_cast(text, number);
        return read && std::isfinite(number) && holds(number) ? std::string() : fmt::format("'{}' is not a finite number {}", text, wanted);
      },
      "");
}

}  // namespace

CLI::Validator not_negative() {
  return number_that("of at least 0", [](double number) { return number >= 0; });
}

CLI::Validator positive() {
  return number_that("above 0", [](double number) { return number > 0; });
}

CLI::Validator path_given() {
  return CLI::Validator([](std::string& text) { return text.empty() ? std::string("is empty; give a path") : std::string(); }, "");
}

}  // namespace spt::cli
