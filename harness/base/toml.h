#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/options.h"

namespace spt {

/// A value of a TOML file and where it stands (for a table's member: where its key stands). Dates and times are refused.
struct TomlValue {
  using List = std::vector<TomlValue>;
  using Table = std::vector<std::pair<std::string, TomlValue>>;  ///< sorted by key
  std::variant<bool, int64_t, double, std::string, List, Table> value;
  int line = 1, column = 1;
};

/// Errors: Error "<file>:<line>:<column>: ..." for what is not TOML 1.0, a key that stands twice, a date, a number that is not finite, and
/// a byte outside ASCII anywhere but in strings and comments.
TomlValue parse_toml(std::string_view text, const std::string& file);

/// Reads one table strictly: a wrong type, a missing key, and at finish() a key nobody asked for, are Errors that begin with
/// "<file>:<line>:<column>: " and name the key and what is allowed.
class TomlReader {
 public:
  /// `path` is how messages call the table: "budget.finetune", "" for the whole file. `table` must outlive the reader.
  TomlReader(const TomlValue& table, std::string file, std::string path);

  bool has(const std::string& key);
  template <class T>
  T get(const std::string& key) {  ///< T: bool, int64_t, double, std::string
    return to<T>(at(key), name(key));
  }
  template <class T>
  T get(const std::string& key, T fallback) {
    return has(key) ? get<T>(key) : fallback;
  }
  template <class T>
  std::optional<T> find(const std::string& key) {
    return has(key) ? std::optional<T>(get<T>(key)) : std::nullopt;
  }
  template <class T>
  std::vector<T> list(const std::string& key) {
    std::vector<T> result;
    for (const TomlValue& item : items(key)) result.push_back(to<T>(item, name(key)));
    return result;
  }
  TomlReader table(const std::string& key);
  std::vector<TomlReader> tables(const std::string& key);  ///< [[key]]; none if missing
  const TomlValue& at(const std::string& key);             ///< Errors: Error if missing
  OptionValue scalar(const std::string& key);              ///< bool, integer, float or string
  std::vector<std::string> keys() const;
  bool is_table(const std::string& key);
  bool is_list(const std::string& key);
  bool is_list_of_tables(const std::string& key);
  void finish() const;

  std::string place() const { return place(table_); }
  std::string place(const std::string& key) const;  ///< "<file>:<line>:<column>" of a key, or of the table where it is missing
  std::string name(const std::string& key) const;   ///< "budget.finetune"
  /// Throws "<place of key>: <name of key>: <message>".
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

 private:
  template <class T>
  T to(const TomlValue& value, const std::string& called) const;
  const std::vector<TomlValue>& items(const std::string& key);
  const TomlValue* lookup(const std::string& key) const;
  std::string place(const TomlValue& value) const;
  const TomlValue::Table& members() const { return std::get<TomlValue::Table>(table_.value); }

  const TomlValue& table_;
  std::string file_, path_;
  std::set<std::string> seen_;
};

}  // namespace spt
