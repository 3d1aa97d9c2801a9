#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "harness/base/error.h"

namespace spt {

/// Strict: a duplicate key, trailing text, NaN or a comment is an Error that begins with `where` and gives line and column.
nlohmann::json parse_json(std::string_view text, std::string_view where);

/// The one text of a value that hashes are taken of: keys sorted, no white space, shortest round-trip numbers (1 and 1.0 differ).
std::string canonical(const nlohmann::json& json);

/// Reads an object strictly: a missing key, a wrong type, and at finish() a key nobody asked for, are Errors that name `where`.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& json, std::string where);
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  const nlohmann::json& at(const char* key);  ///< Errors: Error if missing

  template <class T>
  T get(const char* key) {
    const nlohmann::json& value = at(key);
    try {
      check_type<T>(key, value);
      return value.get<T>();
    } catch (const nlohmann::json::exception&) {
      throw Error("{}: key '{}' has the wrong type ({})", where_, key, value.type_name());
    }
  }
  template <class T>
  T get(const char* key, T fallback) {
    seen_.insert(key);
    return has(key) ? get<T>(key) : fallback;
  }
  void finish() const;
  const std::string& where() const { return where_; }

 private:
  template <class T>
  void check_type(const char* key, const nlohmann::json& value) const {
    // nlohmann converts between numbers and bools in silence.
    const bool fits = std::is_same_v<T, bool>       ? value.is_boolean()
                      : std::is_integral_v<T>       ? value.is_number_integer()
                      : std::is_floating_point_v<T> ? value.is_number()
                                                    : true;
    if (fits) return;
    // Lists and objects are not spelled out: those of a forged file can be deeper than the stack.
    throw Error("{}: key '{}' has the wrong type ({}){}", where_, key, value.type_name(), value.is_structured() ? "" : ": " + value.dump());
  }
  const nlohmann::json& json_;
  std::string where_;
  std::set<std::string> seen_;
};

}  // namespace spt
