#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/error.h"

namespace spt {

/// Options as text formats carry them, from the parser to the typed struct they belong to.
using OptionValue = std::variant<bool, int64_t, double, std::string>;
using OptionMap = std::map<std::string, OptionValue>;

/// An option that only some choices of another one read: `gamma` of a schedule that drops.
struct OptionNeed {
  std::string option;
  std::vector<std::string> choices;
};

/// What is said about an option beside its name, type and default.
struct OptionInfo {
  std::string effect;                     ///< one clause, for people
  std::optional<double> min = {};         ///< smallest allowed number
  std::optional<double> max = {};         ///< largest allowed number
  std::vector<std::string> choices = {};  ///< allowed texts; empty: any
  std::string unit = {};
  std::string stage = {};                ///< "supervised" or "pretrain" if it can change no other stage's result; empty: any
  std::optional<OptionNeed> needs = {};  ///< of options of training alone (harness/job.h): without one of these choices it changes nothing
};

struct OptionSchema {
  std::string name;
  OptionValue default_value;  ///< its alternative is the option's type
  OptionInfo info;
};

/// bool | int | float | string
std::string_view type_name(const OptionValue& value);
std::string to_text(const OptionValue& value);

/// `value` as the schema wants it (an integer is taken where a float is wanted), or an Error that names `where`, the option, the value and
/// what is allowed.
OptionValue checked(const OptionSchema& schema, const OptionValue& value, std::string_view where);

/// `given` over the defaults: every option of the schema is in the answer. Errors: unknown name (with the known ones), wrong type, out of
/// range.
OptionMap complete(const std::vector<OptionSchema>& schema, const OptionMap& given, std::string_view where);

void to_json(nlohmann::json& json, const OptionSchema& schema);
void from_json(const nlohmann::json& json, OptionSchema& schema);
nlohmann::json options_to_json(const OptionMap& options);
OptionMap options_from_json(const nlohmann::json& json, std::string_view where);

/// An option struct describes itself once, and gets its schema, its reader and its writer from that:
///   struct GruOptions {
///     int64_t n_layers = 2;
///     template <class Self, class Visitor> static void visit(Self& self, Visitor&& visit) {
///       visit("n_layers", self.n_layers, {.effect = "depth", .min = 1});
///     }
///   };
/// Fields: bool, int64_t, double, std::string.
template <class T>
std::vector<OptionSchema> schema_of() {
  std::vector<OptionSchema> schema;
  T defaults;
  T::visit(defaults,
           [&](const char* name, auto& field, OptionInfo info) { schema.push_back({name, OptionValue(field), std::move(info)}); });
  return schema;
}

template <class T>
T read_options(const OptionMap& given, std::string_view where) {
  const OptionMap all = complete(schema_of<T>(), given, where);
  T options;
  T::visit(options, [&](const char* name, auto& field, const OptionInfo&) {
    field = std::get<std::remove_reference_t<decltype(field)>>(all.at(name));
  });
  return options;
}

template <class T>
OptionMap write_options(const T& options) {
  OptionMap map;
  T::visit(options, [&](const char* name, const auto& field, const OptionInfo&) { map[name] = OptionValue(field); });
  return map;
}

}  // namespace spt
