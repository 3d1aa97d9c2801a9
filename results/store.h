#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/record.h"

namespace spt::results {

struct PlannedStage {
  std::string key;
  std::string name;    ///< pretrain | finetune
  std::string parent;  ///< key of the stage it starts from; ""
  std::string spec;    ///< canonical JSON of the job spec it was first planned in
  int64_t index = 0;   ///< position in its chain
};

/// A job under the labels of a matrix.
struct PlannedJob {
  std::string key, name;
  std::string task, architecture, protocol, arm, arm_kind, pairs_with, purpose = "reported";
  uint64_t seed = 0;
  bool trivial = false;
  std::vector<std::string> stages;  ///< keys, first to last; the last equals `key`
  double flops = 0;                 ///< planned
  double match_cost = 0;            ///< planned cost on the basis of its arm, for the residual
  std::string metric, unit;         ///< primary metric of the task (TaskAnswer)
  bool higher_is_better = true;
};

struct StageState {
  std::string status = "planned";  ///< planned | running | done | a failure name
  std::string message;
  std::string log_tail;
  int64_t attempts = 0;
  int64_t oom_attempts = 0;
  int64_t step = 0;
};

struct AttemptTimes {  ///< measured times of finished stages, for estimates
  std::string stage_key;
  Stamp stamp;
  int64_t steps = 0;
  double train_s = 0, evaluate_s = 0, wall_s = 0;
};

struct StatusCounts {
  int64_t jobs = 0, done = 0, running = 0, planned = 0;
  std::unordered_map<std::string, int64_t> failed;  ///< by class
};

/// The database. One writer (the supervisor): WAL, BEGIN IMMEDIATE; readers open read-only. All SQL of the project is in store*.cpp,
/// database.cpp and schema.cpp. Errors: Error naming the file for a database that is not ours, newer than this program, locked, or on a
/// full disk. One thread at a time.
class Store {
 public:
  enum class Mode { kReadOnly, kReadWrite };  ///< kReadWrite creates and migrates
  /// ":memory:" for tests. busy_timeout_ms: how long a database is waited for that another program has locked.
  Store(const std::filesystem::path& file, Mode mode, int busy_timeout_ms = 30000);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // --- planning (one transaction each)
  /// The labels of the matrix become these; what is known of a job or stage stays. The analysis hash is kept once a stage of the matrix was
  /// tried: another one then sets analysis_changed. first_run_at: "" is now; kept by later plans.
  void record_plan(const MatrixRow& matrix, const std::vector<PlannedJob>& jobs, const std::vector<PlannedStage>& stages);
  std::unordered_map<std::string, StageState> stage_states() const;  ///< of every known stage
  std::unordered_map<std::string, StageState> stage_states(const std::vector<std::string>& keys) const;
  std::vector<AttemptTimes> attempt_times() const;
  /// Whether a job of a planned matrix has a stage that starts from this one and is not done, whichever run is to train it.
  bool is_needed(const std::string& stage_key) const;

  // --- running
  int64_t begin_attempt(const std::string& stage_key);  ///< number of the new attempt; status running
  /// Upserts by (stage, split, metric, step): the later attempt wins. Idempotent. Answers warnings: values that differ under an equal
  /// stamp.
  std::vector<std::string> ingest(const std::vector<JournalLine>& lines);
  /// Ends an attempt that its journal did not end, or overrides how it did (a killed worker). Idempotent. A done attempt stays done.
  void fail_attempt(const std::string& stage_key, int64_t attempt, Failure failure, const std::string& message,
                    const std::string& log_tail);
  void block(const std::string& stage_key, const std::string& message);  ///< its pretraining failed
  uint64_t ingested_offset(const std::string& stage_key) const;          ///< bytes of its journal that are in the database
  void set_ingested_offset(const std::string& stage_key, uint64_t offset);

  // --- reading
  std::vector<MatrixRow> matrices() const;                             ///< by first run
  std::vector<ResultRow> results(const std::string& matrix_id) const;  ///< purpose `reported` alone
  /// Validation and train metrics of evaluations: of the `wanted` kinds alone, where it names any.
  Curves curves(const std::string& matrix_id, const std::vector<CurveKind>& wanted = {}) const;
  StatusCounts status(const std::string& matrix_id) const;  ///< "" = all jobs
  std::vector<float> scores(const std::string& stage_key, const std::string& split) const;
  std::vector<int32_t> predicted(const std::string& stage_key, const std::string& split) const;
  /// Which cluster of dependent examples each score belongs to; empty where each stands for itself.
  std::vector<int32_t> clusters(const std::string& stage_key, const std::string& split) const;
  std::string integrity_problem() const;  ///< "" or what `PRAGMA quick_check` says
  static int schema_version();
  const std::string& note() const;  ///< "" or what the user should know: no WAL on a network file system

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spt::results
