#include "results/journal.h"

#include <array>
#include <chrono>
#include <cmath>
#include <concepts>
#include <fstream>
#include <limits>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "results/blob.h"

namespace spt::results {
namespace {

using Json = nlohmann::json;

// Names of the alternatives of Event, in its order.
constexpr std::array<const char*, 9> kEventNames = {"start",    "progress", "evaluation", "checkpoint", "init",
                                                    "transfer", "scores",   "done",       "failed"};
static_assert(kEventNames.size() == std::variant_size_v<Event>);

template <class Self, class T>
concept Is = std::same_as<std::remove_const_t<Self>, T>;

/// A list whose key is there only where the list has something: what was written before there was the key reads as an empty one.
template <class List>
struct IfAny {
  List& values;
};
template <class List>
IfAny(List&) -> IfAny<List>;

// --- the fields of each record, once, for the writer and the reader ---
template <Is<Stamp> Self, class Visitor>
void visit_fields(Self& stamp, Visitor&& visit) {
  visit("build_id", stamp.build_id);
  visit("libtorch", stamp.libtorch);
  visit("compiler", stamp.compiler);
  visit("device_kind", stamp.device_kind);
  visit("device_model", stamp.device_model);
  visit("cpu_capability", stamp.cpu_capability);
  visit("threads", stamp.threads);
  visit("deterministic", stamp.deterministic);
}

template <Is<Metric> Self, class Visitor>
void visit_fields(Self& metric, Visitor&& visit) {
  visit("split", metric.split);
  visit("name", metric.name);
  visit("value", metric.value);
  visit("n", metric.n);
}

template <Is<StartEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("stamp", event.stamp);
  visit("host", event.host);
  visit("pid", event.pid);
  visit("resumed_from", event.resumed_from);
  visit("resume_note", event.resume_note);
  visit("parameters", event.parameters);
  visit("parameters_body", event.parameters_body);
  visit("data_hash", event.data_hash);
  visit("partial_data", event.partial_data);
  visit("train_size", event.train_size);
  visit("validation_size", event.validation_size);
  visit("test_size", event.test_size);
  visit("chance", event.chance);
  visit("majority", event.majority);
  visit("notes", event.notes);
  visit("startup_s", event.startup_s);
  visit("open_s", event.open_s);
}

template <Is<ProgressEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("loss", event.loss);
  visit("lr", event.lr);
  visit("step_s", event.step_s);
  visit("steps", event.steps);
  visit("metric", event.metric);
  visit("metric_value", event.metric_value);
}

template <Is<EvaluationEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("index", event.index);
  visit("metrics", event.metrics);
}

template <Is<CheckpointEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("file", event.file);
}

template <Is<InitGroup> Self, class Visitor>
void visit_fields(Self& group, Visitor&& visit) {
  visit("role", group.role);
  visit("tensors", group.tensors);
  visit("values", group.values);
  visit("redrawn", group.redrawn);
  visit("mean", group.mean);
  visit("std", group.std);
}

template <Is<InitEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("init", event.init);
  visit("groups", event.groups);
}

template <Is<TransferEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("copied", event.copied);
  visit("sliced", event.sliced);
  visit("redrawn", event.redrawn);
  visit("dropped", event.dropped);
}

template <Is<ScoresEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("split", event.split);
  visit("metric", event.metric);
  visit("scores", event.scores);
  visit("predicted", event.predicted);
  visit("clusters", IfAny{event.clusters});
}

template <Is<DoneEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("selected_step", event.selected_step);
  visit("not_converged", event.not_converged);
  visit("last", event.last);
  visit("selected", event.selected);
  visit("steps", event.steps);
  visit("examples", event.examples);
  visit("tokens", event.tokens);
  visit("flops", event.flops);
  visit("train_s", event.train_s);
  visit("evaluate_s", event.evaluate_s);
  visit("save_s", event.save_s);
  visit("reload_s", event.reload_s);
  visit("test_s", event.test_s);
  visit("data_wait_s", event.data_wait_s);
  visit("wall_s", event.wall_s);
  visit("peak_memory", event.peak_memory);
  visit("reload_equal", event.reload_equal);
}

template <Is<FailedEvent> Self, class Visitor>
void visit_fields(Self& event, Visitor&& visit) {
  visit("failure", event.failure);
  visit("message", event.message);
  visit("tensor", event.tensor);
}

// --- one value to JSON and back ---
template <class T>
Json encode_fields(const T& record);
template <class T>
void decode_fields(const Json& json, T& record, const std::string& where);

Json encode(bool value) { return value; }
Json encode(int64_t value) { return value; }
Json encode(const std::string& value) { return value; }
Json encode(const std::vector<std::string>& value) { return value; }
Json encode(const Stamp& stamp) { return encode_fields(stamp); }
Json encode(Failure failure) { return std::string(failure_name(failure)); }

Json encode(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

template <class T>
  requires(std::same_as<T, Metric> || std::same_as<T, InitGroup>)
Json encode(const std::vector<T>& records) {
  Json list = Json::array();
  for (const T& record : records) list.push_back(encode_fields(record));
  return list;
}

template <class T>
  requires(std::same_as<T, float> || std::same_as<T, int32_t>)
Json encode(const std::vector<T>& values) {
  return {{"n", static_cast<int64_t>(values.size())}, {"zlib", to_base64(compress(values))}};
}

void decode(JsonReader& reader, const char* key, bool& value) { value = reader.get<bool>(key); }
void decode(JsonReader& reader, const char* key, std::string& value) { value = reader.get<std::string>(key); }
void decode(JsonReader& reader, const char* key, std::vector<std::string>& value) { value = reader.get<std::vector<std::string>>(key); }

void decode(JsonReader& reader, const char* key, int64_t& value) {
  const Json& json = reader.at(key);
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw Error("{}: key '{}' is out of range: {}", reader.where(), key, json.dump());
  value = reader.get<int64_t>(key);
}

void decode(JsonReader& reader, const char* key, double& value) {
  const Json& json = reader.at(key);
  if (!json.is_string()) {
    value = reader.get<double>(key);
    return;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string text = json.get<std::string>();
  if (text == "nan") value = std::numeric_limits<double>::quiet_NaN();
  else if (text == "inf") value = kInfinity;
  else if (text == "-inf") value = -kInfinity;
  else throw Error("{}: key '{}' is no number: '{}'; texts that stand for one: nan, inf, -inf", reader.where(), key, text);
}

void decode(JsonReader& reader, const char* key, Failure& value) {
  const std::string name = reader.get<std::string>(key);
  const std::optional<Failure> failure = failure_from_name(name);
  if (!failure) throw Error("{}: unknown failure class '{}'", reader.where(), name);
  value = *failure;
}

void decode(JsonReader& reader, const char* key, Stamp& stamp) { decode_fields(reader.at(key), stamp, reader.where() + ": " + key); }

template <class T>
  requires(std::same_as<T, Metric> || std::same_as<T, InitGroup>)
void decode(JsonReader& reader, const char* key, std::vector<T>& records) {
  const Json& json = reader.at(key);
  const std::string where = reader.where() + ": " + key;
  if (!json.is_array()) throw Error("{}: expected a list, got {}", where, json.type_name());
  records.clear();
  for (const Json& item : json) decode_fields(item, records.emplace_back(), where);
}

template <class T>
  requires(std::same_as<T, float> || std::same_as<T, int32_t>)
void decode(JsonReader& reader, const char* key, std::vector<T>& values) {
  JsonReader packed(reader.at(key), reader.where() + ": " + key);
  int64_t n = 0;
  decode(packed, "n", n);
  const std::string bytes = from_base64(packed.get<std::string>("zlib"), packed.where());
  packed.finish();
  if constexpr (std::same_as<T, float>) values = decompress_floats(bytes, n, packed.where());
  else values = decompress_ints(bytes, n, packed.where());
}

template <class List>
void decode(JsonReader& reader, const char* key, IfAny<List>& value) {
  if (reader.has(key)) decode(reader, key, value.values);
}

template <class T>
void encode_field(Json& json, const char* key, const T& value) {
  json[key] = encode(value);
}
template <class List>
void encode_field(Json& json, const char* key, const IfAny<List>& value) {
  if (!value.values.empty()) json[key] = encode(value.values);
}

template <class T>
Json encode_fields(const T& record) {
  Json json = Json::object();
  visit_fields(record, [&](const char* key, const auto& value) { encode_field(json, key, value); });
  return json;
}

template <class T>
void decode_fields(const Json& json, T& record, const std::string& where) {
  JsonReader reader(json, where);
  visit_fields(record, [&](const char* key, auto&& value) { decode(reader, key, value); });
  reader.finish();
}

// --- events by name ---
Json encode(const Event& event) {
  return std::visit([](const auto& alternative) { return encode_fields(alternative); }, event);
}

template <size_t I = 0>
Event decode_event(const std::string& name, const Json& json, const std::string& where) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (name != kEventNames[I]) return decode_event<I + 1>(name, json, where);
    std::variant_alternative_t<I, Event> event;
    decode_fields(json, event, where + ": " + name);
    return event;
  } else {
    throw Error("{}: {}", where, unknown_name("event", name, std::vector<std::string>(kEventNames.begin(), kEventNames.end())));
  }
}

int64_t decode_count(JsonReader& reader, const char* key, int64_t least) {
  int64_t value = 0;
  decode(reader, key, value);
  if (value < least) throw Error("{}: key '{}' is {}; the least is {}", reader.where(), key, value, least);
  return value;
}

// Length of `file` up to and with its last newline: what follows was torn by a killed writer.
uint64_t whole_length(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  const size_t newline = content.rfind('\n');
  return newline == std::string::npos ? 0 : newline + 1;
}

// A new attempt must not continue the line that a killed one left unfinished.
const std::filesystem::path& without_torn_line(const std::filesystem::path& file) {
  if (std::filesystem::exists(file)) {
    const uint64_t length = whole_length(file);
    if (length != std::filesystem::file_size(file)) std::filesystem::resize_file(file, length);
  }
  return file;
}

std::string read_from(const std::filesystem::path& file, uint64_t offset) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad() || !in.is_open()) throw Error("cannot read journal '{}'", file.string());
  return text;
}

}  // namespace

std::string format_fields(const Event& event) { return canonical(encode(event)); }

std::string format_line(const JournalLine& line) {
  const Json data = encode(line.event);
  return canonical(Json{{"stage", line.stage_key},
                        {"attempt", line.attempt},
                        {"sequence", line.sequence},
                        {"step", line.step},
                        {"time", encode(line.time)},
                        {"event", kEventNames[line.event.index()]},
                        {"data", data}});
}

JournalLine parse_line(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  JsonReader reader(json, std::string(where));
  JournalLine line;
  line.stage_key = reader.get<std::string>("stage");
  if (line.stage_key.empty()) throw Error("{}: the stage key is empty", where);
  line.attempt = decode_count(reader, "attempt", 1);
  line.sequence = decode_count(reader, "sequence", 0);
  line.step = decode_count(reader, "step", 0);
  decode(reader, "time", line.time);
  line.event = decode_event(reader.get<std::string>("event"), reader.at("data"), reader.where());
  reader.finish();
  return line;
}

JournalWriter::JournalWriter(const std::filesystem::path& file, std::string stage_key, int64_t attempt)
    : file_(without_torn_line(file)), stage_key_(std::move(stage_key)), attempt_(attempt) {}

void JournalWriter::write(int64_t step, Event event) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const JournalLine line{
      .stage_key = stage_key_, .attempt = attempt_, .sequence = sequence_, .step = step, .time = now, .event = std::move(event)};
  file_.append(format_line(line) + "\n");
  ++sequence_;
}

void JournalWriter::sync() { file_.sync(); }

JournalTail read_journal(const std::filesystem::path& file, uint64_t offset) {
  JournalTail tail;
  if (!std::filesystem::exists(file)) return tail;
  tail.offset = offset;
  const uint64_t size = std::filesystem::file_size(file);
  if (size < offset) {
    tail.problems.push_back(
        fmt::format("'{}' has {} bytes, but {} were read before: read again from its start", file.string(), size, offset));
    tail.offset = 0;
  }
  const std::string text = read_from(file, tail.offset);
  const uint64_t first = tail.offset;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    try {
      tail.lines.push_back(
          parse_line(std::string_view(text).substr(begin, end - begin), fmt::format("'{}' at byte {}", file.string(), first + begin)));
    } catch (const Error& e) {
      tail.problems.emplace_back(e.what());
    }
    tail.offset = first + end + 1;
  }
  return tail;
}

}  // namespace spt::results
