#include "harness/catalog.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace spt {
namespace {

using nlohmann::json;

// Each type names its fields once, for the reader and for the writer; T is the type, const or not.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void fields(Is<ArchitectureEntry> auto& e, auto&& field) {
  field("name", e.name), field("version", e.version), field("summary", e.summary), field("source", e.source), field("options", e.options);
  field("causal", e.causal), field("trivial", e.trivial), field("sizes", e.sizes);
}
void fields(Is<TaskEntry> auto& e, auto&& field) {
  field("name", e.name), field("version", e.version), field("summary", e.summary), field("source", e.source), field("options", e.options);
  field("leaks", e.leaks);
}
void fields(Is<ObjectiveEntry> auto& e, auto&& field) { field("name", e.name), field("version", e.version), field("options", e.options); }
void fields(Is<StageEntry> auto& e, auto&& field) { field("name", e.name), field("objective", e.objective), field("options", e.options); }
void fields(Is<ProtocolEntry> auto& e, auto&& field) {
  field("name", e.name), field("version", e.version), field("summary", e.summary), field("source", e.source), field("options", e.options);
  field("causal", e.causal), field("stages", e.stages);
}
void fields(Is<Catalog> auto& c, auto&& field) {
  field("build_id", c.build_id), field("libtorch", c.libtorch), field("compiler", c.compiler), field("cuda", c.cuda);
  field("architectures", c.architectures), field("tasks", c.tasks), field("objectives", c.objectives), field("protocols", c.protocols);
  field("recipes", c.recipes);
}
void fields(Is<TaskQuery> auto& q, auto&& field) { field("name", q.name), field("options", q.options); }
void fields(Is<TaskAnswer> auto& a, auto&& field) {
  field("error", a.error), field("kind", a.kind), field("data_hash", a.data_hash), field("data_source", a.data_source);
  field("partial", a.partial), field("values", a.values), field("vocabulary", a.vocabulary), field("channels", a.channels);
  field("max_length", a.max_length), field("outputs", a.outputs), field("mean_length", a.mean_length), field("mask_ratio", a.mask_ratio);
  field("train_size", a.train_size), field("validation_size", a.validation_size), field("test_size", a.test_size);
  field("metric", a.metric), field("unit", a.unit), field("higher_is_better", a.higher_is_better);
}
void fields(Is<ComponentSpec> auto& c, auto&& field) { field("name", c.name), field("version", c.version), field("options", c.options); }
void fields(Is<ModelQuery> auto& q, auto&& field) {
  field("architecture", q.architecture), field("task", q.task), field("objective", q.objective), field("train", q.train);
  field("profile", q.profile), field("memory", q.memory);
}
void fields(Is<GroupRow> auto& g, auto&& field) {
  field("tensor", g.tensor), field("shape", g.shape), field("role", g.role), field("lr", g.lr), field("weight_decay", g.weight_decay);
}
void fields(Is<ModelAnswer> auto& a, auto&& field) {
  field("error", a.error), field("parameters", a.parameters), field("parameters_body", a.parameters_body);
  field("flops_per_step", a.flops_per_step), field("tokens_per_step", a.tokens_per_step), field("peak_memory", a.peak_memory);
  field("groups", a.groups);
}
void fields(Is<DescribeQuery> auto& q, auto&& field) { field("data", q.data_root), field("tasks", q.tasks), field("models", q.models); }
void fields(Is<DescribeAnswer> auto& a, auto&& field) { field("tasks", a.tasks), field("models", a.models); }
void fields(Is<ProbeQuery> auto& q, auto&& field) {
  field("data", q.data_root), field("device", q.device), field("threads", q.threads), field("steps", q.steps), field("jobs", q.jobs);
}
void fields(Is<ProbeAnswer> auto& a, auto&& field) {
  field("error", a.error), field("startup_s", a.startup_s), field("open_s", a.open_s), field("step_s", a.step_s);
  field("evaluate_example_s", a.evaluate_example_s);
}
void fields(Is<ConvertQuery> auto& q, auto&& field) {
  field("to_ours", q.to_ours), field("names", q.names), field("architecture", q.architecture), field("options", q.options);
  field("input", q.input), field("output", q.output), field("drop", q.drop);
}
void fields(Is<ConvertAnswer> auto& a, auto&& field) { field("taken", a.taken), field("dropped", a.dropped), field("sha256", a.sha256); }
void fields(Is<RunRequest> auto& r, auto&& field) {
  field("job", r.job), field("stage", r.stage), field("stage_key", r.stage_key), field("attempt", r.attempt);
  field("parent_dir", r.parent_dir), field("data", r.data_root), field("device", r.device), field("threads", r.threads);
  field("prefetch_threads", r.prefetch_threads), field("checkpoint_s", r.checkpoint_s), field("heartbeat_s", r.heartbeat_s);
  field("resume_across", r.resume_across);
}

template <class T>
constexpr bool kIsList = false;
template <class T>
constexpr bool kIsList<std::vector<T>> = true;
template <class T>
constexpr bool kIsPair = false;
template <class A, class B>
constexpr bool kIsPair<std::pair<A, B>> = true;
template <class T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

template <class T>
json written(const T& value) {
  if constexpr (kIsPlain<T> || std::is_same_v<T, OptionSchema>) return json(value);
  else if constexpr (kIsPair<T>) return json::array({written(value.first), written(value.second)});
  else if constexpr (std::is_same_v<T, OptionMap>) return options_to_json(value);
  else if constexpr (std::is_same_v<T, TrainOptions>) return options_to_json(effective_options(value));
  else if constexpr (std::is_same_v<T, JobSpec>) return to_json(value);
  else if constexpr (kIsList<T>) {
    json array = json::array();
    for (const auto& item : value) array.push_back(written(item));
    return array;
  } else {
    json object = json::object();
    fields(value, [&](const char* name, const auto& member) { object[name] = written(member); });
    return object;
  }
}

template <class T>
void read(const json& value, const std::string& where, T& target);

void read_schema(const json& value, const std::string& where, OptionSchema& schema) {
  JsonReader reader(value, where);
  schema.name = reader.get<std::string>("name");
  const auto type = reader.get<std::string>("type");
  schema.default_value = options_from_json({{"default", reader.at("default")}}, where).at("default");
  if (type == "float" && std::holds_alternative<int64_t>(schema.default_value))
    schema.default_value = static_cast<double>(std::get<int64_t>(schema.default_value));
  if (type != type_name(schema.default_value))
    throw Error("{}: the default {} of {} is no {}", where, to_text(schema.default_value), schema.name, type);
  schema.info.effect = reader.get<std::string>("effect");
  if (reader.has("min")) schema.info.min = reader.get<double>("min");
  if (reader.has("max")) schema.info.max = reader.get<double>("max");
  schema.info.choices = reader.get<std::vector<std::string>>("choices", {});
  schema.info.unit = reader.get<std::string>("unit", "");
  schema.info.stage = reader.get<std::string>("stage", "");
  reader.finish();
}

template <class T>
void read_list(const json& value, const std::string& where, std::vector<T>& list) {
  if (!value.is_array()) throw Error("{}: expected a list, got {}", where, value.type_name());
  list.clear();
  for (size_t i = 0; i < value.size(); ++i) read(value[i], fmt::format("{} {}", where, i), list.emplace_back());
}

template <class A, class B>
void read_pair(const json& value, const std::string& where, std::pair<A, B>& pair) {
  if (!value.is_array() || value.size() != 2) throw Error("{}: expected a list of two, got {}", where, value.dump());
  read(value[0], where, pair.first);
  read(value[1], where, pair.second);
}

template <class T>
void read(const json& value, const std::string& where, T& target) {
  if constexpr (kIsList<T>) read_list(value, where, target);
  else if constexpr (kIsPair<T>) read_pair(value, where, target);
  else if constexpr (std::is_same_v<T, OptionMap>) target = options_from_json(value, where);
  else if constexpr (std::is_same_v<T, TrainOptions>) target = train_options_from_json(value, where);
  else if constexpr (std::is_same_v<T, JobSpec>) target = job_from_json(value, where);
  else if constexpr (std::is_same_v<T, OptionSchema>) read_schema(value, where, target);
  else if constexpr (kIsPlain<T>) {
    const json object = {{"value", value}};  // JsonReader has the strict types
    target = JsonReader(object, where).get<T>("value");
  } else {
    JsonReader reader(value, where);
    fields(target, [&](const char* name, auto& member) { read(reader.at(name), fmt::format("{}: {}", where, name), member); });
    reader.finish();
  }
}

template <class T>
T read_whole(const json& value, std::string_view where) {
  T result;
  read(value, std::string(where), result);
  return result;
}

}  // namespace

json to_json(const Catalog& catalog) { return written(catalog); }
Catalog catalog_from_json(const json& value, std::string_view where) { return read_whole<Catalog>(value, where); }
json to_json(const DescribeQuery& query) { return written(query); }
DescribeQuery describe_query_from_json(const json& value, std::string_view where) { return read_whole<DescribeQuery>(value, where); }
json to_json(const DescribeAnswer& answer) { return written(answer); }
DescribeAnswer describe_answer_from_json(const json& value, std::string_view where) { return read_whole<DescribeAnswer>(value, where); }
json to_json(const ProbeQuery& query) { return written(query); }
ProbeQuery probe_query_from_json(const json& value, std::string_view where) { return read_whole<ProbeQuery>(value, where); }
json to_json(const std::vector<std::vector<ProbeAnswer>>& answers) { return written(answers); }
std::vector<std::vector<ProbeAnswer>> probe_answers_from_json(const json& value, std::string_view where) {
  return read_whole<std::vector<std::vector<ProbeAnswer>>>(value, where);
}
json to_json(const ConvertQuery& query) { return written(query); }
ConvertQuery convert_query_from_json(const json& value, std::string_view where) { return read_whole<ConvertQuery>(value, where); }
json to_json(const ConvertAnswer& answer) { return written(answer); }
ConvertAnswer convert_answer_from_json(const json& value, std::string_view where) { return read_whole<ConvertAnswer>(value, where); }
json to_json(const RunRequest& request) { return written(request); }
RunRequest run_request_from_json(const json& value, std::string_view where) {
  const auto request = read_whole<RunRequest>(value, where);
  if (request.stage < 0 || request.stage >= static_cast<int64_t>(request.job.stages.size()))
    throw Error("{}: stage {} of a job with {} stages", where, request.stage, request.job.stages.size());
  return request;
}

}  // namespace spt
