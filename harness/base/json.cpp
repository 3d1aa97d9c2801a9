#include "harness/base/json.h"

namespace spt {

nlohmann::json parse_json(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> open;
  std::string duplicate;
  const auto callback = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second && duplicate.empty())
      duplicate = parsed.get<std::string>();
    return true;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text, callback);
    if (!duplicate.empty()) throw Error("{}: key '{}' stands twice in one object", where, duplicate);
    return json;
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: not valid JSON: {}", where, e.what());
  }
}

std::string canonical(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

JsonReader::JsonReader(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
  if (!json.is_object()) throw Error("{}: expected an object, got {}", where_, json.type_name());
}

const nlohmann::json& JsonReader::at(const char* key) {
  seen_.insert(key);
  const auto found = json_.find(key);
  if (found == json_.end()) throw Error("{}: key '{}' is missing", where_, key);
  return *found;
}

void JsonReader::finish() const {
  for (const auto& [key, value] : json_.items())
    if (!seen_.contains(key)) throw Error("{}: {}", where_, unknown_name("key", key, std::vector<std::string>(seen_.begin(), seen_.end())));
}

}  // namespace spt
