#include "harness/values.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/toml.h"

namespace spt {
namespace {

template <class Entry>
const Entry& find_entry(const std::vector<Entry>& entries, std::string_view what, const std::string& name, std::string_view where) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; });
  if (found != entries.end()) return *found;
  std::vector<std::string> known;
  for (const Entry& entry : entries) known.push_back(entry.name);
  throw Error("{}: {}", where, unknown_name(what, name, known));
}

// The given options, each checked at its own place.
OptionMap checked_options(const std::vector<OptionSchema>& schema, const Settings& given, const std::string& owner) {
  OptionMap result;
  for (const auto& [name, setting] : given) {
    const auto option = std::find_if(schema.begin(), schema.end(), [&](const OptionSchema& o) { return o.name == name; });
    if (option == schema.end()) {
      std::vector<std::string> known;
      for (const OptionSchema& o : schema) known.push_back(o.name);
      throw Error("{}: {}", setting.origin, unknown_name("option of " + owner, name, known));
    }
    result[name] = checked(*option, setting.value, setting.origin);
  }
  return result;
}

const OptionMap& find_size(const ArchitectureEntry& entry, const MatrixComponent& component) {
  std::vector<std::string> known;
  for (const auto& [name, options] : entry.sizes) {
    if (name == component.size) return options;
    known.push_back(name);
  }
  throw Error("{}: {}", component.origin, unknown_name("size of " + entry.name, component.size, known));
}

void add_origins(Origins* origins, const std::string& prefix, const OptionMap& values, const std::map<std::string, std::string>& given) {
  if (!origins) return;
  for (const auto& [name, value] : values) {
    const auto found = given.find(name);
    origins->push_back({prefix + name, value, found == given.end() ? "default" : found->second});
  }
}

std::map<std::string, std::string> places(const Settings& settings) {
  std::map<std::string, std::string> result;
  for (const auto& [name, setting] : settings) result[name] = setting.origin;
  return result;
}

// One [[recipe]] table, as an override whose `task` is a registered name.
Override read_recipe(TomlReader& reader, const std::string& architecture) {
  static const std::vector<OptionSchema> kSchema = schema_of<TrainOptions>();
  Override recipe;
  recipe.task = reader.get<std::string>("task", "");
  recipe.stage = reader.get<std::string>("stage", "");
  recipe.origin = reader.place();
  const auto source = reader.get<std::string>("source");
  TomlReader train = reader.table("train");
  for (const std::string& key : train.keys())
    recipe.train[key] = {train.scalar(key), fmt::format("recipe of {}: {}", architecture, source)};
  for (auto& [name, value] : checked_options(kSchema, recipe.train, "training")) recipe.train[name].value = value;
  reader.finish();
  return recipe;
}

// Lays the settings of the selected overrides over `result`: the most specific wins, and those that are as specific must agree with it.
template <class Selects>
void lay_over(Settings& result, const std::vector<Override>& overrides, const Selects& selects) {
  std::map<std::string, const Override*> winners;
  std::vector<const Override*> selected;
  for (const Override& candidate : overrides) {
    if (!selects(candidate)) continue;
    selected.push_back(&candidate);
    for (const auto& [name, setting] : candidate.train) {
      const Override*& winner = winners[name];
      if (!winner || winner->specificity() < candidate.specificity()) winner = &candidate;
    }
  }
  for (const auto& [name, winner] : winners) {
    const Setting& setting = winner->train.at(name);
    for (const Override* other : selected) {
      const auto found = other->train.find(name);
      if (found == other->train.end() || other->specificity() < winner->specificity() || found->second.value == setting.value) continue;
      throw Error("{}: {} = {}, but {} is as specific and says {}; make one of them select more", found->second.origin, name,
                  to_text(found->second.value), setting.origin, to_text(setting.value));
    }
    result[name] = setting;
  }
}

}  // namespace

const ArchitectureEntry& find_architecture_entry(const Catalog& catalog, const std::string& name, std::string_view where) {
  return find_entry(catalog.architectures, "architecture", name, where);
}
const TaskEntry& find_task_entry(const Catalog& catalog, const std::string& name, std::string_view where) {
  return find_entry(catalog.tasks, "task", name, where);
}
const ObjectiveEntry& find_objective_entry(const Catalog& catalog, const std::string& name, std::string_view where) {
  return find_entry(catalog.objectives, "objective", name, where);
}

ComponentSpec architecture_spec(const Catalog& catalog, const MatrixComponent& component, bool causal, Origins* origins) {
  const ArchitectureEntry& entry = find_architecture_entry(catalog, component.name, component.origin);
  OptionMap given = checked_options(entry.options, component.options, entry.name);
  std::map<std::string, std::string> from = places(component.options);
  if (!component.size.empty()) {
    for (const auto& [name, value] : find_size(entry, component)) {
      if (given.contains(name)) throw Error("{}: {} is what size \"{}\" sets; give one of them", from[name], name, component.size);
      given[name] = value;
      from[name] = fmt::format("{} size {}", component.origin, component.size);
    }
  }
  if (causal) {
    if (entry.causal.empty())
      throw Error("{}: architecture '{}' cannot be causal, but a protocol of the matrix needs that; leave one of them out",
                  component.origin, entry.name);
    for (const auto& [name, value] : entry.causal) {
      given[name] = value;
      from[name] = "the protocol, which needs a causal model";
    }
  }
  ComponentSpec spec{entry.name, entry.version, complete(entry.options, given, component.origin)};
  add_origins(origins, "architecture.", spec.options, from);
  return spec;
}

ComponentSpec task_spec(const Catalog& catalog, const MatrixComponent& component, Origins* origins) {
  const TaskEntry& entry = find_task_entry(catalog, component.name, component.origin);
  const OptionMap given = checked_options(entry.options, component.options, entry.name);
  ComponentSpec spec{entry.name, entry.version, complete(entry.options, given, component.origin)};
  add_origins(origins, "task.", spec.options, places(component.options));
  return spec;
}

ProtocolUse protocol_use(const Catalog& catalog, const MatrixComponent& component) {
  ProtocolUse use;
  use.entry = &find_entry(catalog.protocols, "protocol", component.name, component.origin);
  use.label = component.label;
  use.options = complete(use.entry->options, checked_options(use.entry->options, component.options, use.entry->name), component.origin);
  if (const auto init = use.options.find("init"); init != use.options.end()) use.init = std::get<std::string>(init->second);
  if (const auto given = component.options.find("init"); given != component.options.end()) use.init_origin = given->second.origin;
  if (const auto inputs = use.options.find("pretrain_inputs"); inputs != use.options.end())
    use.inputs = std::get<std::string>(inputs->second);
  if (use.inputs == "train" && use.label == component.name) use.label += "+unlabelled";
  return use;
}

ComponentSpec objective_spec(const Catalog& catalog, const ProtocolUse& protocol, const StageEntry& stage, double mask_ratio,
                             Origins* origins) {
  const std::string where = fmt::format("stage {} of protocol {}", stage.name, protocol.entry->name);
  const ObjectiveEntry& entry = find_objective_entry(catalog, stage.objective, where);
  OptionMap given;
  std::map<std::string, std::string> from;
  for (const auto& [option, source] : stage.options) {
    const auto found = protocol.options.find(source);
    if (found == protocol.options.end()) throw Error("{}: it has no option '{}'", where, source);
    given[option] = found->second;
    from[option] = fmt::format("option {} of protocol {}", source, protocol.label);
  }
  if (const auto ratio = given.find("ratio"); ratio != given.end() && ratio->second == OptionValue(0.0)) {
    ratio->second = mask_ratio;
    from["ratio"] = "mask ratio of the task";
  }
  ComponentSpec spec{entry.name, entry.version, complete(entry.options, given, where)};
  add_origins(origins, fmt::format("stage.{}.objective.", stage.name), spec.options, from);
  return spec;
}

TrainValues::TrainValues(const Matrix& matrix, const Catalog& catalog) : matrix_(matrix) {
  for (const auto& [architecture, text] : catalog.recipes) {
    const std::string file = architecture + " recipe";
    const TomlValue document = parse_toml(text, file);
    TomlReader root(document, file, "");
    for (TomlReader& reader : root.tables("recipe")) recipes_[architecture].push_back(read_recipe(reader, architecture));
    root.finish();
  }
}

Settings TrainValues::settings(const MatrixComponent& architecture, const MatrixComponent& task, const std::string& protocol,
                               const std::string& stage) const {
  Settings result;
  if (const auto recipes = recipes_.find(architecture.name); recipes != recipes_.end())
    lay_over(result, recipes->second, [&](const Override& recipe) { return recipe.selects("", task.name, "", stage); });
  for (const auto& [name, setting] : matrix_.train) result[name] = setting;
  if (const auto own = matrix_.stages.find(stage); own != matrix_.stages.end())
    for (const auto& [name, setting] : own->second) result[name] = setting;
  lay_over(result, matrix_.overrides,
           [&](const Override& override) { return override.selects(architecture.label, task.label, protocol, stage); });
  return result;
}

TrainOptions TrainValues::train(const MatrixComponent& architecture, const MatrixComponent& task, const std::string& protocol,
                                const std::string& stage, Origins* origins) const {
  const Settings given = settings(architecture, task, protocol, stage);
  TrainOptions train;
  TrainOptions::visit(train, [&](const char* name, auto& field, const OptionInfo&) {  // each was checked where it was read
    if (const auto found = given.find(name); found != given.end())
      field = std::get<std::remove_reference_t<decltype(field)>>(found->second.value);
  });
  if (const auto found = given.find("milestones"); found != given.end()) milestone_shares(train.milestones, found->second.origin);
  if (origins) add_origins(origins, fmt::format("stage.{}.", stage), effective_options(train), places(given));
  return train;
}

}  // namespace spt
