#pragma once

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace spt {

/// What the user or the machine did wrong: the message gives the value, the place and what would be right. Caught in main(): exit 2.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  template <class... A>
    requires(sizeof...(A) > 0)
  explicit Error(fmt::format_string<A...> format, A&&... arguments)
      : std::runtime_error(fmt::format(format, std::forward<A>(arguments)...)) {}
};

/// Data that are absent or not the expected ones; a worker reports it as failure class `data`.
class DataError : public Error {
 public:
  using Error::Error;
};

/// The message for a name that is not among the known ones, with the closest of them when it is close:
/// "unknown architecture 's4e'; did you mean 's4d'? known: dlr, s4d, transformer".
std::string unknown_name(std::string_view what, std::string_view name, std::span<const std::string> known);

/// Levenshtein distance, for suggestions.
size_t edit_distance(std::string_view a, std::string_view b);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace spt

/// For what only a mistake of ours can trigger; on in release. SPT_CHECK(x > 0, "x is {}", x).
#define SPT_CHECK(condition, ...)                                                                    \
  do {                                                                                               \
    if (!(condition)) ::spt::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
