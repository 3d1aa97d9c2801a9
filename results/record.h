#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spt::results {

/// Why a stage ended without a result. Names as stored: diverged, oom, timeout, hung, crashed, killed, data, blocked.
enum class Failure { kDiverged, kOom, kTimeout, kHung, kCrashed, kKilled, kData, kBlocked };
std::string_view failure_name(Failure failure);
std::optional<Failure> failure_from_name(std::string_view name);

/// How the label of an architecture that starts from given weights ends, so that every table says it (definitions.md 3, external).
inline constexpr std::string_view kExternalLabel = "+external";

/// What can change a last bit, stored with each attempt and never in a key.
struct Stamp {
  std::string build_id;  ///< ELF build id of the worker
  std::string libtorch;  ///< 2.14.1
  std::string compiler;
  std::string device_kind;  ///< cpu | cuda
  std::string device_model;
  std::string cpu_capability;  ///< AVX2, AVX512, ...
  int64_t threads = 1;
  bool deterministic = true;
  bool operator==(const Stamp&) const = default;
};

struct Metric {
  std::string split;  ///< train | validation | test
  std::string name;   ///< loss, accuracy, ...
  double value = 0;   ///< NaN is kept as a null with a status
  int64_t n = 0;
};

// --- events of a journal, in the order a worker writes them --------------------------------------------------------------------------
struct StartEvent {
  Stamp stamp;
  std::string host;
  int64_t pid = 0;
  int64_t resumed_from = 0;  ///< step; 0: from the beginning
  std::string resume_note;   ///< why a checkpoint was or was not used
  int64_t parameters = 0, parameters_body = 0;
  std::string data_hash;
  bool partial_data = false;
  int64_t train_size = 0, validation_size = 0, test_size = 0;
  double chance = 0;               ///< majority rate of the test split; 0 where there are no classes
  double majority = 0;             ///< test score of always predicting train's majority class (or mean)
  std::vector<std::string> notes;  ///< split hygiene
  double startup_s = 0, open_s = 0;
};
struct ProgressEvent {  ///< a heartbeat; about once a second
  double loss = 0, lr = 0;
  double step_s = 0;   ///< median seconds of the last steps
  int64_t steps = 0;   ///< of the whole stage
  std::string metric;  ///< selection metric, last evaluated; "" before the first
  double metric_value = 0;
};
struct EvaluationEvent {  ///< one of the E evaluations
  int64_t index = 0;      ///< 1..E
  std::vector<Metric> metrics;
};
struct CheckpointEvent {
  std::string file;
};
struct TransferEvent {  ///< load audit of a stage that starts from another
  std::vector<std::string> copied, sliced, redrawn, dropped;
};
struct InitGroup {  ///< parameters of one role
  std::string role;
  int64_t tensors = 0, values = 0;
  bool redrawn = false;  ///< by the protocol's init; else as the architecture draws them
  double mean = 0, std = 0;
};
struct InitEvent {   ///< how a fresh model began, before a checkpoint of another stage was copied into it
  std::string init;  ///< default | normal | normal-state
  std::vector<InitGroup> groups;
};
struct ScoresEvent {  ///< per example, dataset order; travels compressed
  std::string split;
  std::string metric;
  std::vector<float> scores;
  std::vector<int32_t> predicted;      ///< empty where there are no classes
  std::vector<int32_t> clusters = {};  ///< which of dependent examples belong together (a recording); empty where each stands for itself
};
struct DoneEvent {
  int64_t selected_step = 0;
  bool not_converged = false;
  std::vector<Metric> last;      ///< validation metrics of the last step
  std::vector<Metric> selected;  ///< validation metrics of the selected step, and test metrics of a supervised stage
  int64_t steps = 0, examples = 0, tokens = 0;
  double flops = 0;  ///< training, analytic, over the executed (padded) batches
  double train_s = 0, evaluate_s = 0, save_s = 0, reload_s = 0, test_s = 0, data_wait_s = 0, wall_s = 0;
  int64_t peak_memory = 0;  ///< bytes: resident on CPU, allocated on CUDA
  bool reload_equal = false;
};
struct FailedEvent {
  Failure failure = Failure::kCrashed;
  std::string message;
  std::string tensor;  ///< first bad tensor of a diverged run
};
using Event = std::variant<StartEvent, ProgressEvent, EvaluationEvent, CheckpointEvent, InitEvent, TransferEvent, ScoresEvent, DoneEvent,
                           FailedEvent>;

/// One line of journal.jsonl.
struct JournalLine {
  std::string stage_key;
  int64_t attempt = 1;
  int64_t sequence = 0;  ///< counts from 0 in each attempt
  int64_t step = 0;      ///< updates done
  double time = 0;       ///< Unix seconds
  Event event;
};

// --- rows that reports read ----------------------------------------------------------------------------------------------------------
/// One job under the labels of one matrix.
struct ResultRow {
  std::string job_key, name;
  std::string task, architecture, protocol;  ///< labels
  std::string arm;                           ///< scratch@F, spt-masked@P+F, scratch@(P+F), scratch@(P+F):flops
  std::string arm_kind;                      ///< scratch | spt | matched
  std::string pairs_with;                    ///< matched arm: the spt arm it answers
  std::string pretrain_key;                  ///< "" without pretraining
  uint64_t seed = 0;
  bool trivial = false;  ///< baseline architecture
  std::string status;    ///< done | missing | running | a failure name
  std::string failure_message;
  std::string metric, unit;
  bool higher_is_better = true;
  std::optional<double> test, validation;  ///< primary metric at the selected step
  std::optional<double> last_validation;
  double chance = 0, majority = 0;
  int64_t train_size = 0, validation_size = 0, test_size = 0;
  bool partial_data = false, not_converged = false;
  int64_t parameters = 0, parameters_body = 0;
  double flops = 0;  ///< of all stages of the job
  int64_t steps = 0, examples = 0, tokens = 0;
  double device_s = 0;
  int64_t peak_memory = 0;
  std::optional<double> match_residual;  ///< matched arms: |C(spt)/C(scratch) - 1| on the basis
  std::string device_kind, device_model, libtorch, cpu_capability, build_id;
  int64_t threads = 0;
};

/// Basis that an arm is matched on, by its name: examples, tokens or flops after the first colon behind the last '@'
/// (`scratch@(P+F):flops`, `scratch@(P+F):flops:half`); else steps.
std::string_view matched_basis(std::string_view arm);

/// Learning curves of the jobs of a matrix. A point names its curve by number: a million points repeat no text.
struct Curve {
  std::string job_key, stage_key, stage, split, metric;  ///< stage: pretrain | finetune
};
/// Names a kind of curve: a metric of the stages of one name.
struct CurveKind {
  std::string stage, metric;
  bool operator==(const CurveKind&) const = default;
};
struct CurvePoint {
  size_t curve = 0;
  int64_t step = 0;
  double value = 0;
};
struct Curves {
  std::vector<Curve> curves;
  std::vector<CurvePoint> points;  ///< of a curve one after the other, by step
};

/// What a matrix says about itself, for headers and footers.
struct MatrixRow {
  std::string id, name, profile, reference, mode, toml;
  std::vector<uint64_t> seeds;
  std::string analysis_hash;
  bool analysis_changed = false;  ///< after results were seen
  double margin = 0;
  std::string first_run_at;
};

}  // namespace spt::results
