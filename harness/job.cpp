#include "harness/job.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"

namespace spt {
namespace {

using nlohmann::json;

json component_to_json(const ComponentSpec& component) {
  return {{"name", component.name}, {"version", component.version}, {"options", options_to_json(component.options)}};
}

ComponentSpec component_from_json(const json& value, const std::string& where) {
  JsonReader reader(value, where);
  ComponentSpec component{reader.get<std::string>("name"), reader.get<int64_t>("version"), options_from_json(reader.at("options"), where)};
  reader.finish();
  return component;
}

json stage_to_json(const StageSpec& stage) {
  return {{"name", stage.name},     {"objective", component_to_json(stage.objective)},
          {"inputs", stage.inputs}, {"train", options_to_json(effective_options(stage.train))},
          {"steps", stage.steps},   {"evaluations", stage.evaluations}};
}

StageSpec stage_from_json(const json& value, const std::string& where) {
  JsonReader reader(value, where);
  StageSpec stage;
  stage.name = reader.get<std::string>("name");
  stage.objective = component_from_json(reader.at("objective"), where + ": objective");
  stage.inputs = reader.get<std::string>("inputs");
  if (stage.inputs != "subset" && stage.inputs != "train")
    throw Error("{}: {}", where, unknown_name("inputs", stage.inputs, std::vector<std::string>{"subset", "train"}));
  stage.train = train_options_from_json(reader.at("train"), where + ": train");
  stage.steps = reader.get<int64_t>("steps");
  stage.evaluations = reader.get<int64_t>("evaluations");
  if (stage.steps < 1) throw Error("{}: steps = {} must be at least 1", where, stage.steps);
  if (stage.evaluations < 1) throw Error("{}: evaluations = {} must be at least 1", where, stage.evaluations);
  reader.finish();
  return stage;
}

GivenCheckpoint checkpoint_from_json(const json& value, const std::string& where) {
  JsonReader reader(value, where);
  GivenCheckpoint checkpoint{reader.get<std::string>("file"), reader.get<std::string>("sha256")};
  if (checkpoint.sha256.empty()) throw Error("{}: sha256 is empty", where);
  reader.finish();
  return checkpoint;
}

uint64_t seed_from_json(const json& value, const std::string& where, std::string_view name) {
  if (!value.is_number_unsigned()) throw Error("{}: {} = {} must be an integer of at least 0", where, name, value.dump());
  return value.get<uint64_t>();
}

// Keys are spelled by appending, not through a JSON value: a plan has ten thousands of cells. A test compares the text with canonical().
void append_string(std::string& text, std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
  if (!plain) {
    text += canonical(json(value));
    return;
  }
  text += '"';
  text += value;
  text += '"';
}

void append_value(std::string& text, const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) text += *flag ? "true" : "false";
  else if (const auto* integer = std::get_if<int64_t>(&value)) text += fmt::to_string(*integer);
  else if (const auto* string = std::get_if<std::string>(&value)) append_string(text, *string);
  else text += canonical(json(std::get<double>(value)));
}

void append_options(std::string& text, const OptionMap& options, const std::vector<std::string>& left_out) {
  text += '{';
  bool first = true;
  for (const auto& [name, value] : options) {
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    if (!first) text += ',';
    first = false;
    append_string(text, name);
    text += ':';
    append_value(text, value);
  }
  text += '}';
}

void append_component(std::string& text, const ComponentSpec& component, const std::vector<std::string>& left_out) {
  text += "{\"name\":";
  append_string(text, component.name);
  text += ",\"options\":";
  append_options(text, component.options, left_out);
  text += fmt::format(",\"version\":{}}}", component.version);
}

const std::vector<std::string>& supervised_train_options() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const OptionSchema& option : schema_of<TrainOptions>())
      if (option.info.stage == "supervised") names.push_back(option.name);
    return names;
  }();
  return kNames;
}

/// The options of a stage's training as text; a pretraining stage never has a supervised head, whatever comes after it.
/// Thousands of stages of a plan share a few texts, so the last ones are kept.
const std::string& train_text(const TrainOptions& train, bool supervised) {
  struct Kept {
    TrainOptions train;
    bool supervised;
    std::string text;
  };
  constexpr size_t kMost = 16;
  static thread_local std::deque<Kept> kept;
  const auto same = [&](const Kept& entry) { return entry.supervised == supervised && entry.train == train; };
  if (const auto found = std::find_if(kept.begin(), kept.end(), same); found != kept.end()) return found->text;
  std::string text;
  append_options(text, effective_options(train), supervised ? std::vector<std::string>() : supervised_train_options());
  if (kept.size() == kMost) kept.pop_back();
  return kept.emplace_front(train, supervised, std::move(text)).text;
}

void append_stage(std::string& text, const StageSpec& stage) {
  text += fmt::format("{{\"evaluations\":{},\"inputs\":", stage.evaluations);
  append_string(text, stage.inputs);
  text += ",\"name\":";
  append_string(text, stage.name);
  text += ",\"objective\":";
  append_component(text, stage.objective, {});
  text += fmt::format(",\"steps\":{},\"train\":{}}}", stage.steps, train_text(stage.train, stage.objective.name == "supervised"));
}

}  // namespace

OptionMap effective_options(const TrainOptions& train) {
  static const std::vector<std::pair<std::string, OptionNeed>> kNeeds = [] {
    std::vector<std::pair<std::string, OptionNeed>> needs;
    for (const OptionSchema& option : schema_of<TrainOptions>())
      if (option.info.needs) needs.emplace_back(option.name, *option.info.needs);
    return needs;
  }();
  const OptionMap all = write_options(train);
  OptionMap options = all;
  for (const auto& [name, need] : kNeeds) {
    const auto& choice = std::get<std::string>(all.at(need.option));
    if (std::find(need.choices.begin(), need.choices.end(), choice) == need.choices.end()) options.erase(name);
  }
  return options;
}

TrainOptions train_options_from_json(const json& value, std::string_view where) {
  const OptionMap given = options_from_json(value, where);
  const auto train = read_options<TrainOptions>(given, where);
  const OptionMap effective = effective_options(train);
  for (const auto& [name, option] : effective)
    if (!given.contains(name)) throw Error("{}: key '{}' is missing", where, name);
  for (const auto& [name, option] : given)
    if (!effective.contains(name)) throw Error("{}: key '{}' is not read by this optimizer and schedule", where, name);
  if (effective.contains("milestones")) milestone_shares(train.milestones, where);
  return train;
}

std::vector<double> milestone_shares(const std::string& text, std::string_view where) {
  std::vector<double> shares;
  for (size_t first = 0; first <= text.size();) {
    const size_t end = std::min(text.find(',', first), text.size());
    std::string_view part = std::string_view(text).substr(first, end - first);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    double share = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), share);
    if (error != std::errc() || rest != part.data() + part.size() || !(share > 0 && share < 1))
      throw Error("{}: milestones = \"{}\": '{}' is no number above 0 and below 1; give shares of the steps, such as \"0.5, 0.75\"", where,
                  text, part);
    shares.push_back(share);
    first = end + 1;
  }
  return shares;
}

json to_json(const JobSpec& spec) {
  json stages = json::array();
  for (const StageSpec& stage : spec.stages) stages.push_back(stage_to_json(stage));
  json streams = json::object();
  for (const auto& [name, seed] : spec.streams) streams[name] = seed;
  json object = {{"architecture", component_to_json(spec.architecture)},
                 {"task", component_to_json(spec.task)},
                 {"supervised_options", spec.supervised_options},
                 {"data_hash", spec.data_hash},
                 {"init", spec.init},
                 {"profile", spec.profile},
                 {"stages", std::move(stages)},
                 {"seed", spec.seed},
                 {"streams", std::move(streams)}};
  if (!spec.checkpoint.sha256.empty()) object["checkpoint"] = {{"file", spec.checkpoint.file}, {"sha256", spec.checkpoint.sha256}};
  return object;
}

JobSpec job_from_json(const json& value, std::string_view place) {
  const std::string where(place);
  JsonReader reader(value, where);
  JobSpec spec;
  spec.architecture = component_from_json(reader.at("architecture"), where + ": architecture");
  spec.task = component_from_json(reader.at("task"), where + ": task");
  spec.supervised_options = reader.get<std::vector<std::string>>("supervised_options");
  spec.data_hash = reader.get<std::string>("data_hash");
  if (spec.data_hash.empty()) throw Error("{}: data_hash is empty", where);
  spec.init = reader.get<std::string>("init");
  if (reader.has("checkpoint")) spec.checkpoint = checkpoint_from_json(reader.at("checkpoint"), where + ": checkpoint");
  spec.profile = reader.get<std::string>("profile");
  const json& stages = reader.at("stages");
  if (!stages.is_array() || stages.empty()) throw Error("{}: stages must be a list of at least one stage", where);
  for (size_t i = 0; i < stages.size(); ++i) spec.stages.push_back(stage_from_json(stages[i], fmt::format("{}: stage {}", where, i)));
  spec.seed = seed_from_json(reader.at("seed"), where, "seed");
  const json& streams = reader.at("streams");
  if (!streams.is_object()) throw Error("{}: streams must be an object, not {}", where, streams.type_name());
  for (const auto& [name, seed] : streams.items()) spec.streams[name] = seed_from_json(seed, where + ": streams", name);
  reader.finish();
  return spec;
}

std::string cell_text(const JobSpec& spec, size_t stage) {
  SPT_CHECK(stage < spec.stages.size(), "stage {} of {}", stage, spec.stages.size());
  const bool supervised = spec.stages[stage].objective.name == "supervised";
  static const std::vector<std::string> kNone;
  std::string text;
  text.reserve(2048);
  text += "{\"architecture\":";
  append_component(text, spec.architecture, {});
  if (!spec.checkpoint.sha256.empty()) {
    text += ",\"checkpoint\":";
    append_string(text, spec.checkpoint.sha256);
  }
  text += ",\"data_hash\":";
  append_string(text, spec.data_hash);
  text += ",\"init\":";
  append_string(text, spec.init);
  text += ",\"profile\":";
  append_string(text, spec.profile);
  text += ",\"stages\":[";
  for (size_t i = 0; i <= stage; ++i) {
    if (i > 0) text += ',';
    append_stage(text, spec.stages[i]);
  }
  text += "],\"task\":";
  append_component(text, spec.task, supervised ? kNone : spec.supervised_options);
  text += '}';
  return text;
}

std::string key_text(const std::string& cell, uint64_t seed, const std::map<std::string, uint64_t>& streams) {
  std::string text = fmt::format("{}\n{{\"seed\":{},\"streams\":{{", cell, seed);
  for (bool first = true; const auto& [name, value] : streams) {
    if (!first) text += ',';
    first = false;
    append_string(text, name);
    text += fmt::format(":{}", value);
  }
  text += "}}";
  return text;
}

std::string stage_key(const std::string& cell, uint64_t seed, const std::map<std::string, uint64_t>& streams) {
  return sha256(key_text(cell, seed, streams));
}

std::string stage_key(const JobSpec& spec, size_t stage) { return stage_key(cell_text(spec, stage), spec.seed, spec.streams); }

std::string job_key(const JobSpec& spec) {
  SPT_CHECK(!spec.stages.empty(), "a job has a stage");
  return stage_key(spec, spec.stages.size() - 1);
}

}  // namespace spt
