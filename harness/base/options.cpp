#include "harness/base/options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/json.h"

namespace spt {
namespace {

std::string allowed(const OptionSchema& schema) {
  const OptionInfo& info = schema.info;
  std::string text(type_name(schema.default_value));
  if (!info.choices.empty()) text = fmt::format("one of {}", fmt::join(info.choices, ", "));
  if (info.min && info.max) text += fmt::format(" from {} to {}", *info.min, *info.max);
  else if (info.min) text += fmt::format(" of at least {}", *info.min);
  else if (info.max) text += fmt::format(" of at most {}", *info.max);
  return text;
}

void check_number(double number, const OptionSchema& schema, const OptionValue& value, std::string_view where) {
  if (!std::isfinite(number) || (schema.info.min && number < *schema.info.min) || (schema.info.max && number > *schema.info.max))
    throw Error("{}: {} = {} is out of range; allowed: {}", where, schema.name, to_text(value), allowed(schema));
}

}  // namespace

std::string_view type_name(const OptionValue& value) {
  static constexpr std::string_view kNames[] = {"bool", "int", "float", "string"};
  return kNames[value.index()];
}

std::string to_text(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) return fmt::format("\"{}\"", v);
        else return fmt::format("{}", v);
      },
      value);
}

OptionValue checked(const OptionSchema& schema, const OptionValue& value, std::string_view where) {
  OptionValue result = value;
  if (std::holds_alternative<double>(schema.default_value) && std::holds_alternative<int64_t>(value))
    result = static_cast<double>(std::get<int64_t>(value));
  if (result.index() != schema.default_value.index())
    throw Error("{}: {} = {} is {} {}; it must be {}", where, schema.name, to_text(value), type_name(value) == "int" ? "an" : "a",
                type_name(value), allowed(schema));
  if (const auto* number = std::get_if<int64_t>(&result)) check_number(static_cast<double>(*number), schema, value, where);
  if (auto* number = std::get_if<double>(&result)) {
    check_number(*number, schema, value, where);
    *number += 0.0;  // -0 is 0: equal options have equal keys
  }
  if (const auto* text = std::get_if<std::string>(&result)) {
    const auto& choices = schema.info.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *text) == choices.end())
      throw Error("{}: {}", where, unknown_name(schema.name, *text, choices));
  }
  return result;
}

OptionMap complete(const std::vector<OptionSchema>& schema, const OptionMap& given, std::string_view where) {
  OptionMap result;
  for (const OptionSchema& option : schema) result[option.name] = option.default_value;
  for (const auto& [name, value] : given) {
    const auto option = std::find_if(schema.begin(), schema.end(), [&wanted = name](const OptionSchema& o) { return o.name == wanted; });
    if (option == schema.end()) {
      std::vector<std::string> known;
      for (const OptionSchema& o : schema) known.push_back(o.name);
      throw Error("{}: {}", where, unknown_name("option", name, known));
    }
    result[name] = checked(*option, value, where);
  }
  return result;
}

namespace {

nlohmann::json value_to_json(const OptionValue& value) {
  return std::visit([](const auto& v) { return nlohmann::json(v); }, value);
}

OptionValue value_from_json(const nlohmann::json& json, std::string_view where) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw Error("{}: an option must be a bool, an integer, a float or a string, not {}", where, json.type_name());
}

}  // namespace

void to_json(nlohmann::json& json, const OptionSchema& schema) {
  const OptionInfo& info = schema.info;
  json = {{"name", schema.name},
          {"type", type_name(schema.default_value)},
          {"default", value_to_json(schema.default_value)},
          {"effect", info.effect}};
  if (info.min) json["min"] = *info.min;
  if (info.max) json["max"] = *info.max;
  if (!info.choices.empty()) json["choices"] = info.choices;
  if (!info.unit.empty()) json["unit"] = info.unit;
  if (!info.stage.empty()) json["stage"] = info.stage;
}

void from_json(const nlohmann::json& json, OptionSchema& schema) {
  schema.name = json.at("name");
  const std::string type = json.at("type");
  const nlohmann::json& value = json.at("default");
  if (type == "float") schema.default_value = value.get<double>();
  else schema.default_value = value_from_json(value, schema.name);
  OptionInfo& info = schema.info;
  info.effect = json.at("effect");
  if (json.contains("min")) info.min = json["min"].get<double>();
  if (json.contains("max")) info.max = json["max"].get<double>();
  info.choices = json.value("choices", std::vector<std::string>{});
  info.unit = json.value("unit", "");
  info.stage = json.value("stage", "");
}

nlohmann::json options_to_json(const OptionMap& options) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : options) json[name] = value_to_json(value);
  return json;
}

OptionMap options_from_json(const nlohmann::json& json, std::string_view where) {
  if (!json.is_object()) throw Error("{}: options must be an object, not {}", where, json.type_name());
  OptionMap options;
  for (const auto& [name, value] : json.items()) options[name] = value_from_json(value, fmt::format("{}: {}", where, name));
  return options;
}

}  // namespace spt
