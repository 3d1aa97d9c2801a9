#include "harness/worker/checkpoint.h"

#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"

namespace spt::worker {
namespace {

using nlohmann::json;

constexpr const char* kKindKey = "kind";
constexpr const char* kLastKind = "spt-bench last 2";
constexpr const char* kBestKind = "spt-bench best 1";
constexpr const char* kHashKey = "sha256";

struct DtypePair {
  const char* name;
  at::ScalarType type;
};
constexpr DtypePair kDtypes[] = {{"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf},  {"BF16", at::kBFloat16},
                                 {"I64", at::kLong},   {"I32", at::kInt},   {"I16", at::kShort}, {"I8", at::kChar},
                                 {"U8", at::kByte},    {"BOOL", at::kBool}};

/// SHA-256 over names, types, shapes, bytes and metadata: any changed bit of the file shows.
std::string content_hash(const SafetensorsFile& content) {
  Sha256 hash;
  for (const auto& [name, tensor] : content.tensors) {
    hash.update(fmt::format("{}|{}|{}|", name, tensor.dtype, fmt::join(tensor.shape, ",")));
    hash.update(tensor.bytes);
  }
  for (const auto& [key, value] : content.metadata)
    if (key != kHashKey) hash.update(fmt::format("{}={}|", key, value));
  return hash.hex();
}

void write_hashed(const std::filesystem::path& file, SafetensorsFile content) {
  content.metadata[kHashKey] = content_hash(content);
  write_safetensors(file, content);
}

std::string metadata(const SafetensorsFile& content, const char* key, std::string_view where) {
  const auto found = content.metadata.find(key);
  if (found == content.metadata.end()) throw Error("{}: not a checkpoint: it has no '{}'", where, key);
  return found->second;
}

SafetensorsFile read_hashed(const std::filesystem::path& file, const char* kind) {
  SafetensorsFile content = read_safetensors(file);
  if (const std::string found = metadata(content, kKindKey, file.string()); found != kind)
    throw Error("{}: a file of kind '{}', not '{}'", file.string(), found, kind);
  if (metadata(content, kHashKey, file.string()) != content_hash(content))
    throw Error("{}: corrupt: its content does not have its hash", file.string());
  return content;
}

// Numbers travel as shortest round-trip text: JSON has no NaN.
std::string number_text(double value) { return fmt::format("{}", value); }

double number_from(const std::string& text, std::string_view where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw Error("{}: '{}' is no number", where, text);
  return value;
}

json metrics_json(const std::vector<protocols::MetricValue>& metrics) {
  json list = json::array();
  for (const protocols::MetricValue& m : metrics) list.push_back({m.name, number_text(m.value), m.n});
  return list;
}

json numbers_json(const std::vector<double>& numbers) {
  json list = json::array();
  for (const double number : numbers) list.push_back(number_text(number));
  return list;
}

std::vector<protocols::MetricValue> metrics_from(const json& list, std::string_view where) {
  std::vector<protocols::MetricValue> metrics;
  for (const json& row : list)
    metrics.push_back({row.at(0).get<std::string>(), number_from(row.at(1).get<std::string>(), where), row.at(2).get<int64_t>()});
  return metrics;
}

/// One place names the fields, for both directions.
template <class State, class Visitor>
void visit_state(State& s, Visitor&& visit) {
  visit("step", s.totals.step);
  visit("examples", s.totals.examples);
  visit("tokens", s.totals.tokens);
  visit("flops", s.totals.flops);
  visit("train_s", s.totals.train_s);
  visit("data_wait_s", s.totals.data_wait_s);
  visit("evaluations", s.evaluations);
  visit("best_step", s.best_step);
  visit("best_index", s.best_index);
  visit("evaluate_s", s.evaluate_s);
  visit("save_s", s.save_s);
  visit("wall_s", s.wall_s);
  visit("peak_memory", s.peak_memory);
  visit("mixed_stamps", s.mixed_stamps);
}

std::string state_text(const StageState& state) {
  json out = json::object();
  visit_state(state, [&](const char* name, const auto& value) { out[name] = value; });
  out["best"] = metrics_json(state.best);
  out["last"] = metrics_json(state.last);
  out["selection"] = numbers_json(state.selection);
  return canonical(out);
}

StageState state_from(const std::string& text, const std::string& where) {
  const json in = parse_json(text, where);
  JsonReader reader(in, where);
  StageState state;
  visit_state(state, [&](const char* name, auto& value) { value = reader.get<std::remove_reference_t<decltype(value)>>(name); });
  state.best = metrics_from(reader.at("best"), where);
  state.last = metrics_from(reader.at("last"), where);
  for (const json& number : reader.at("selection")) state.selection.push_back(number_from(number.get<std::string>(), where));
  reader.finish();
  return state;
}

template <class StampType, class Visitor>
void visit_stamp(StampType& s, Visitor&& visit) {
  visit("build_id", s.build_id);
  visit("libtorch", s.libtorch);
  visit("compiler", s.compiler);
  visit("device_kind", s.device_kind);
  visit("device_model", s.device_model);
  visit("cpu_capability", s.cpu_capability);
  visit("threads", s.threads);
  visit("deterministic", s.deterministic);
}

std::string stamp_text(const results::Stamp& stamp) {
  json out = json::object();
  visit_stamp(stamp, [&](const char* name, const auto& value) { out[name] = value; });
  return canonical(out);
}

results::Stamp stamp_from(const std::string& text, const std::string& where) {
  const json in = parse_json(text, where);
  JsonReader reader(in, where);
  results::Stamp stamp;
  visit_stamp(stamp, [&](const char* name, auto& value) { value = reader.get<std::remove_reference_t<decltype(value)>>(name); });
  reader.finish();
  return stamp;
}

/// Copies `from` into the tensors of `into`, all or nothing.
void restore(const std::map<std::string, RawTensor>& from, const std::vector<std::pair<std::string, at::Tensor>>& into,
             std::string_view where) {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  for (const auto& [name, target] : into) {
    const auto found = from.find(name);
    if (found == from.end()) throw Error("{}: tensor '{}' is missing", where, name);
    const at::Tensor value = from_raw(found->second);
    if (value.sizes() != target.sizes() || value.scalar_type() != target.scalar_type())
      throw Error("{}: tensor '{}' is {} {}, the model has {} {}", where, name, found->second.dtype, fmt::join(value.sizes(), "x"),
                  to_raw(target).dtype, fmt::join(target.sizes(), "x"));
    values.push_back(value);
  }
  if (from.size() != into.size()) {
    for (const auto& [name, tensor] : from)
      if (std::none_of(into.begin(), into.end(), [&](const auto& t) { return t.first == name; }))
        throw Error("{}: the model has no tensor '{}'", where, name);
  }
  for (size_t i = 0; i < into.size(); ++i) at::Tensor(into[i].second).copy_(values[i]);
}

std::vector<std::pair<std::string, at::Tensor>> last_tensors(const models::Model& model, const protocols::Optimizer& optimizer) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& [name, tensor] : model_tensors(model)) all.emplace_back("model." + name, tensor);
  for (const auto& [name, tensor] : optimizer.state()) all.emplace_back("optimizer." + name, tensor);
  return all;
}

}  // namespace

RawTensor to_raw(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(torch::kCPU).contiguous();
  for (const DtypePair& pair : kDtypes) {
    if (pair.type != flat.scalar_type()) continue;
    return {pair.name, flat.sizes().vec(), std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes())};
  }
  throw Error("a tensor of type {} has no place in a safetensors file", c10::toString(flat.scalar_type()));
}

at::Tensor from_raw(const RawTensor& raw) {
  for (const DtypePair& pair : kDtypes) {
    if (raw.dtype != pair.name) continue;
    const at::Tensor tensor = torch::empty(raw.shape, pair.type);
    SPT_CHECK(tensor.nbytes() == raw.bytes.size(), "{} bytes for a tensor of {}", raw.bytes.size(), tensor.nbytes());
    if (!raw.bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), raw.bytes.data(), raw.bytes.size());
    return tensor;
  }
  throw Error("safetensors dtype '{}' has no counterpart", raw.dtype);
}

std::vector<std::pair<std::string, at::Tensor>> model_tensors(const models::Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& item : model.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

void save_last(const std::filesystem::path& file, const models::Model& model, const protocols::Optimizer& optimizer,
               const StageState& state, const std::string& stage_key, const results::Stamp& stamp) {
  SafetensorsFile content;
  for (const auto& [name, tensor] : last_tensors(model, optimizer)) content.tensors.emplace(name, to_raw(tensor));
  content.metadata = {{kKindKey, kLastKind}, {"stage_key", stage_key}, {"state", state_text(state)}, {"stamp", stamp_text(stamp)}};
  write_hashed(file, std::move(content));
}

void save_best(const std::filesystem::path& file, const models::Model& model, int64_t step, const std::string& stage_key) {
  SafetensorsFile content;
  for (const auto& [name, tensor] : model_tensors(model)) content.tensors.emplace(name, to_raw(tensor));
  content.metadata = {{kKindKey, kBestKind}, {"stage_key", stage_key}, {"step", fmt::format("{}", step)}};
  write_hashed(file, std::move(content));
}

LoadedLast read_last(const std::filesystem::path& file) {
  LoadedLast last{.content = read_hashed(file, kLastKind), .state = {}, .stage_key = {}, .stamp = {}};
  const std::string where = file.string();
  last.state = state_from(metadata(last.content, "state", where), where);
  last.stage_key = metadata(last.content, "stage_key", where);
  last.stamp = stamp_from(metadata(last.content, "stamp", where), where);
  return last;
}

LoadedBest read_best(const std::filesystem::path& file) {
  LoadedBest best{.content = read_hashed(file, kBestKind), .step = 0, .stage_key = {}};
  best.step = static_cast<int64_t>(number_from(metadata(best.content, "step", file.string()), file.string()));
  best.stage_key = metadata(best.content, "stage_key", file.string());
  return best;
}

void restore_last(const LoadedLast& last, models::Model& model, protocols::Optimizer& optimizer, std::string_view where) {
  restore(last.content.tensors, last_tensors(model, optimizer), where);
  optimizer.set_steps(last.state.totals.step);
}

void restore_model(const SafetensorsFile& content, models::Model& model, std::string_view where) {
  restore(content.tensors, model_tensors(model), where);
}

}  // namespace spt::worker
