#include "harness/base/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

namespace spt {
namespace {

std::string toml_place(const std::string& file, int line, int column) { return fmt::format("{}:{}:{}", file, line, column); }

/// Finds a byte that toml++ must not see: its table of Unicode spaces has undefined behaviour, and no bare key or number may hold one
/// anyway.
class AsciiScan {
 public:
  AsciiScan(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Errors: Error with the place of such a byte, or of a key of so many parts that toml++ would run out of stack.
  void run() {
    if (text_.starts_with("\xEF\xBB\xBF"))
      throw Error("{}: starts with a byte order mark; save it as UTF-8 without one", toml_place(file_, 1, 1));
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') skip_comment();
      else if (c == '"' || c == '\'') skip_string(c);
      else {
        if (static_cast<unsigned char>(c) >= 128)
          throw Error("{}: a character outside ASCII may stand only in a string or a comment", toml_place(file_, line_, column()));
        count_dot(c);
        advance();
      }
    }
  }

 private:
  // Keys a.b.c nest without brackets, which toml++ counts; numbers have a dot too, but not many between two of these signs.
  void count_dot(char c) {
    constexpr int kMostDots = 100;
    if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '[') dots_ = 0;
    if (c == '.' && ++dots_ > kMostDots) throw Error("{}: a key of more than {} parts", toml_place(file_, line_, column()), kMostDots);
  }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }
  void advance() {
    if (text_[at_++] == '\n') ++line_, line_start_ = at_;
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') advance();
  }
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multiline = text_.substr(at_).starts_with(triple);
    for (int i = 0; i < (multiline ? 3 : 1); ++i) advance();
    while (at_ < text_.size()) {
      if (text_[at_] == '\\' && quote == '"') {
        advance();
        if (at_ < text_.size()) advance();
      } else if (multiline && text_.substr(at_).starts_with(triple)) {
        for (int i = 0; i < 3; ++i) advance();
        return;
      } else if (!multiline && (text_[at_] == quote || text_[at_] == '\n')) {  // a line break in a string is toml++'s to refuse
        advance();
        return;
      } else {
        advance();
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1, dots_ = 0;
};

TomlValue converted(const toml::node& node, const std::string& file) {
  TomlValue result;
  result.line = static_cast<int>(node.source().begin.line);
  result.column = static_cast<int>(node.source().begin.column);
  const std::string place = toml_place(file, result.line, result.column);
  if (const auto* table = node.as_table()) {
    TomlValue::Table members;
    for (const auto& [key, value] : *table) {
      members.emplace_back(std::string(key.str()), converted(value, file));
      const auto begin = key.source().begin;
      if (begin.line > 0)
        members.back().second.line = static_cast<int>(begin.line), members.back().second.column = static_cast<int>(begin.column);
    }
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    result.value = std::move(members);
  } else if (const auto* array = node.as_array()) {
    TomlValue::List list;
    for (const toml::node& item : *array) list.push_back(converted(item, file));
    result.value = std::move(list);
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* flag = node.as_boolean()) {
    result.value = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get())) throw Error("{}: a number must be finite", place);
    result.value = number->get();
  } else {
    throw Error("{}: dates and times have no use here", place);
  }
  return result;
}

std::string_view toml_type(const TomlValue& value) {
  static constexpr std::string_view kNames[] = {"a bool", "an integer", "a float", "a string", "a list", "a table"};
  return kNames[value.value.index()];
}

// The value as it would be written, cut where it is long.
std::string toml_text(const TomlValue& value) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) return fmt::format("\"{}\"", v.size() > 60 ? v.substr(0, 60) + "..." : v);
        else if constexpr (std::is_same_v<T, TomlValue::List>) return "[...]";
        else if constexpr (std::is_same_v<T, TomlValue::Table>) return "{...}";
        else return fmt::format("{}", v);
      },
      value.value);
}

template <class T>
constexpr std::string_view kTomlWanted = "a string";
template <>
constexpr std::string_view kTomlWanted<bool> = "true or false";
template <>
constexpr std::string_view kTomlWanted<int64_t> = "an integer";
template <>
constexpr std::string_view kTomlWanted<double> = "a number";

}  // namespace

TomlValue parse_toml(std::string_view text, const std::string& file) {
  AsciiScan(text, file).run();
  try {
    const toml::table table = toml::parse(text, std::string_view(file));
    TomlValue result = converted(table, file);
    result.line = result.column = 1;
    return result;
  } catch (const toml::parse_error& e) {
    const auto& begin = e.source().begin;
    throw Error("{}: {}", toml_place(file, static_cast<int>(begin.line), static_cast<int>(begin.column)), e.description());
  }
}

TomlReader::TomlReader(const TomlValue& table, std::string file, std::string path)
    : table_(table), file_(std::move(file)), path_(std::move(path)) {
  SPT_CHECK(std::holds_alternative<TomlValue::Table>(table.value), "{} is no table", path_);
}

const TomlValue* TomlReader::lookup(const std::string& key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

bool TomlReader::has(const std::string& key) {
  seen_.insert(key);
  return lookup(key) != nullptr;
}

const TomlValue& TomlReader::at(const std::string& key) {
  seen_.insert(key);
  if (const TomlValue* value = lookup(key)) return *value;
  for (const auto& [name, value] : members())  // a misspelt key is a better message than a missing one
    if (!seen_.contains(name) && edit_distance(name, key) <= 2) fail(name, fmt::format("unknown key; did you mean '{}'?", key));
  throw Error("{}: key '{}' is missing", place(), name(key));
}

template <class T>
T TomlReader::to(const TomlValue& value, const std::string& called) const {
  if constexpr (std::is_same_v<T, double>)
    if (const auto* integer = std::get_if<int64_t>(&value.value)) return static_cast<double>(*integer);
  if (const T* exact = std::get_if<T>(&value.value)) return *exact;
  throw Error("{}: {} = {} is {}; it must be {}", place(value), called, toml_text(value), toml_type(value), kTomlWanted<T>);
}
template bool TomlReader::to<bool>(const TomlValue&, const std::string&) const;
template int64_t TomlReader::to<int64_t>(const TomlValue&, const std::string&) const;
template double TomlReader::to<double>(const TomlValue&, const std::string&) const;
template std::string TomlReader::to<std::string>(const TomlValue&, const std::string&) const;

const std::vector<TomlValue>& TomlReader::items(const std::string& key) {
  const TomlValue& value = at(key);
  if (const auto* list = std::get_if<TomlValue::List>(&value.value)) return *list;
  throw Error("{}: {} = {} is {}; it must be a list", place(value), name(key), toml_text(value), toml_type(value));
}

TomlReader TomlReader::table(const std::string& key) {
  const TomlValue& value = at(key);
  if (!std::holds_alternative<TomlValue::Table>(value.value))
    throw Error("{}: {} = {} is {}; it must be a table", place(value), name(key), toml_text(value), toml_type(value));
  return TomlReader(value, file_, name(key));
}

std::vector<TomlReader> TomlReader::tables(const std::string& key) {
  std::vector<TomlReader> result;
  if (!has(key)) return result;
  if (!is_list_of_tables(key)) throw Error("{}: {} must be written as [[{}]] tables", place(key), name(key), name(key));
  for (const TomlValue& item : items(key)) result.emplace_back(item, file_, name(key));
  return result;
}

OptionValue TomlReader::scalar(const std::string& key) {
  const TomlValue& value = at(key);
  return std::visit(
      [&](const auto& v) -> OptionValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_constructible_v<OptionValue, T>) return v;
        else throw Error("{}: {} is {}; it must be a bool, a number or a string", place(value), name(key), toml_type(value));
      },
      value.value);
}

std::vector<std::string> TomlReader::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : members()) result.push_back(key);
  return result;
}

bool TomlReader::is_table(const std::string& key) { return has(key) && std::holds_alternative<TomlValue::Table>(lookup(key)->value); }
bool TomlReader::is_list(const std::string& key) { return has(key) && std::holds_alternative<TomlValue::List>(lookup(key)->value); }
bool TomlReader::is_list_of_tables(const std::string& key) {
  if (!is_list(key)) return false;
  const auto& list = std::get<TomlValue::List>(lookup(key)->value);
  return !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const TomlValue& v) { return std::holds_alternative<TomlValue::Table>(v.value); });
}

void TomlReader::finish() const {
  for (const auto& [key, value] : members())
    if (!seen_.contains(key))
      throw Error(
          "{}: {}", place(value),
          unknown_name(path_.empty() ? "key" : fmt::format("key of {}", path_), key, std::vector<std::string>(seen_.begin(), seen_.end())));
}

std::string TomlReader::place(const TomlValue& value) const { return toml_place(file_, value.line, value.column); }

std::string TomlReader::place(const std::string& key) const {
  const TomlValue* value = lookup(key);
  return place(value ? *value : table_);
}

std::string TomlReader::name(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

void TomlReader::fail(const std::string& key, const std::string& message) const {
  throw Error("{}: {}: {}", place(key), name(key), message);
}

}  // namespace spt
