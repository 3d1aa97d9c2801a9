#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/options.h"
#include "harness/job.h"

namespace spt {

// What the worker says it has, and what it answers about specs. Both programs use these types and their JSON (catalog.cpp), so neither can
// misread the other. The planner knows nothing else about architectures, tasks and protocols.

struct ArchitectureEntry {
  std::string name;
  int64_t version = 1;
  std::string summary, source;
  std::vector<OptionSchema> options;
  OptionMap causal;      ///< option values that make it causal; empty: it cannot be
  bool trivial = false;  ///< a baseline
  std::vector<std::pair<std::string, OptionMap>> sizes;
};

struct TaskEntry {
  std::string name;
  int64_t version = 1;
  std::string summary, source;
  std::vector<OptionSchema> options;
  std::string leaks = {};  ///< what two splits share, or ""
};

struct ObjectiveEntry {
  std::string name;
  int64_t version = 1;
  std::vector<OptionSchema> options;
};

struct StageEntry {
  std::string name, objective;
  std::vector<std::pair<std::string, std::string>> options;  ///< (objective option, protocol option)
};

struct ProtocolEntry {
  std::string name;
  int64_t version = 1;
  std::string summary, source;
  std::vector<OptionSchema> options;
  bool causal = false;
  std::vector<StageEntry> stages;
};

struct Catalog {
  std::string build_id, libtorch, compiler;
  bool cuda = false;  ///< this LibTorch has its CUDA half
  std::vector<ArchitectureEntry> architectures;
  std::vector<TaskEntry> tasks;
  std::vector<ObjectiveEntry> objectives;
  std::vector<ProtocolEntry> protocols;
  std::vector<std::pair<std::string, std::string>> recipes;  ///< (architecture, TOML text)
};
nlohmann::json to_json(const Catalog& catalog);
Catalog catalog_from_json(const nlohmann::json& json, std::string_view where);

/// `describe` reads {"tasks": [TaskQuery], "models": [ModelQuery], "data": "<root>"} and answers {"tasks": [TaskAnswer], "models":
/// [ModelAnswer]}.
struct TaskQuery {
  std::string name;
  OptionMap options;  ///< complete
};
struct TaskAnswer {
  std::string error;  ///< "" or why there is no answer
  std::string kind, data_hash, data_source;
  bool partial = false, values = false;
  int64_t vocabulary = 0, channels = 0, max_length = 0, outputs = 0;
  double mean_length = 0;  ///< of train examples, pads not counted
  double mask_ratio = 0;
  int64_t train_size = 0, validation_size = 0, test_size = 0;
  std::string metric, unit;
  bool higher_is_better = true;
};
struct ModelQuery {
  ComponentSpec architecture, task, objective;
  TrainOptions train;
  std::string profile = "fair";  ///< of the rules of groups, and of what is done with pads
  bool memory = true;            ///< peak_memory is wanted: some steps of training
};
struct GroupRow {
  std::string tensor;
  std::vector<int64_t> shape;
  std::string role;
  double lr = 0, weight_decay = 0;  ///< before the schedule
};
struct ModelAnswer {
  std::string error;
  int64_t parameters = 0, parameters_body = 0;
  double flops_per_step = 0;   ///< training, padded batch, expectation over the stage's sampler
  double tokens_per_step = 0;  ///< B x mean real length
  int64_t peak_memory = 0;     ///< bytes of a training step, estimated: weights, gradients, optimizer state, activations; 0: not asked
  std::vector<GroupRow> groups;
};
struct DescribeQuery {
  std::string data_root;
  std::vector<TaskQuery> tasks;
  std::vector<ModelQuery> models;
};
struct DescribeAnswer {
  std::vector<TaskAnswer> tasks;
  std::vector<ModelAnswer> models;
};
nlohmann::json to_json(const DescribeQuery& query);
DescribeQuery describe_query_from_json(const nlohmann::json& json, std::string_view where);
nlohmann::json to_json(const DescribeAnswer& answer);
DescribeAnswer describe_answer_from_json(const nlohmann::json& json, std::string_view where);

/// `probe` reads a ProbeQuery and measures a few steps; nothing is stored.
struct ProbeQuery {
  std::string data_root, device = "cpu";
  int64_t threads = 1, steps = 3;
  std::vector<JobSpec> jobs;  ///< every stage of each is probed
};
struct ProbeAnswer {
  std::string error;
  double startup_s = 0, open_s = 0;  ///< start of the process and opening the data, once a stage
  double step_s = 0;                 ///< median seconds of one update
  double evaluate_example_s = 0;     ///< seconds per evaluated example
};
nlohmann::json to_json(const ProbeQuery& query);
ProbeQuery probe_query_from_json(const nlohmann::json& json, std::string_view where);
/// One list of answers a job, one answer a stage.
nlohmann::json to_json(const std::vector<std::vector<ProbeAnswer>>& answers);
std::vector<std::vector<ProbeAnswer>> probe_answers_from_json(const nlohmann::json& json, std::string_view where);

/// `convert` reads a ConvertQuery: a safetensors file to write under other names. `import` gives a file that a matrix can name as
/// `checkpoint`.
struct ConvertQuery {
  bool to_ours = true;  ///< import, else export
  std::string names;    ///< whose names are not ours: gpt-neox, not-from-scratch
  std::string architecture;
  OptionMap options;              ///< of the architecture; those left out have their defaults
  std::string input, output;      ///< files
  std::vector<std::string> drop;  ///< import: tensors to leave out although their names are not known
};
struct ConvertAnswer {
  std::vector<std::pair<std::string, std::string>> taken;  ///< (name in the input, name in the output)
  std::vector<std::string> dropped;                        ///< names in the input
  std::string sha256;                                      ///< of the output
};
nlohmann::json to_json(const ConvertQuery& query);
ConvertQuery convert_query_from_json(const nlohmann::json& json, std::string_view where);
nlohmann::json to_json(const ConvertAnswer& answer);
ConvertAnswer convert_answer_from_json(const nlohmann::json& json, std::string_view where);

/// Metadata of a file that an import wrote: what its tensors belong to. Other files of our names have none of it.
inline constexpr const char* kWeightsArchitecture = "architecture";
inline constexpr const char* kWeightsOptions = "options";  ///< JSON, complete

/// `run DIR` reads DIR/request.json: one stage to train. Nothing here enters a key but `job`.
struct RunRequest {
  JobSpec job;
  int64_t stage = 0;  ///< index into job.stages
  std::string stage_key;
  int64_t attempt = 1;
  std::string parent_dir;  ///< run folder of the stage before, relative to DIR; "" for the first
  std::string data_root;
  std::string device = "cpu";  ///< cpu | cuda
  int64_t threads = 1;
  int64_t prefetch_threads = 1;
  double checkpoint_s = 30;  ///< seconds between checkpoints; also at each evaluation
  double heartbeat_s = 1;
  bool resume_across = false;  ///< resume a checkpoint of another build or device kind
};
nlohmann::json to_json(const RunRequest& request);
RunRequest run_request_from_json(const nlohmann::json& json, std::string_view where);

}  // namespace spt
