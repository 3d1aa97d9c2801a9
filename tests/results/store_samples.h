#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/store.h"
#include "tests/results/samples.h"

// Jobs, stages and journal lines that the tests of the store share.
namespace spt::results {

inline MatrixRow sample_matrix(const std::string& hash = "hash-1") {
  MatrixRow matrix;
  matrix.id = matrix.name = "quick";
  matrix.profile = "fair";
  matrix.reference = "transformer";
  matrix.mode = "finetune";
  matrix.toml = "name = \"quick\"\n";
  matrix.seeds = {1, 18446744073709551615u};
  matrix.analysis_hash = hash;
  matrix.margin = 0.02;
  return matrix;
}

inline PlannedJob sample_job(const std::string& key, const std::string& arm, const std::string& kind, std::vector<std::string> stages) {
  PlannedJob job;
  job.key = key;
  job.task = "fashion";
  job.architecture = "s4d";
  job.protocol = kind == "spt" ? "spt-masked" : "scratch";
  job.arm = arm;
  job.arm_kind = kind;
  job.name = "fashion/s4d/" + arm + "/seed=1";
  job.seed = 1;
  job.stages = std::move(stages);
  job.metric = "accuracy";
  job.unit = "";
  return job;
}

/// Two jobs share the pretraining stage "pre"; "fine" is the spt arm, "match" its matched arm by FLOPs, "base" the scratch arm.
inline void record_sample(Store& store, const MatrixRow& matrix = sample_matrix()) {
  std::vector<PlannedJob> jobs = {
      sample_job("base", "scratch@F", "scratch", {"base"}), sample_job("fine", "spt-masked@P+F", "spt", {"pre", "fine"}),
      sample_job("match", "scratch@(P+F):flops", "matched", {"match"}), sample_job("tuned", "spt-masked@P+F", "spt", {"pre", "tuned"})};
  jobs[2].pairs_with = "spt-masked@P+F";
  jobs[3].purpose = "tuning";
  jobs[3].seed = 100;
  store.record_plan(matrix, jobs,
                    {{"fine", "finetune", "pre", "{\"fine\":1}", 1},
                     {"tuned", "finetune", "pre", "{}", 1},
                     {"pre", "pretrain", "", "{}", 0},
                     {"base", "finetune", "", "{}", 0},
                     {"match", "finetune", "", "{}", 0}});
}

/// Numbers the lines of an attempt as a worker does.
class Attempt {
 public:
  Attempt(std::string key, int64_t number) : key_(std::move(key)), number_(number) {}
  Attempt& at(int64_t step, Event event) {
    lines_.push_back(
        {key_, number_, static_cast<int64_t>(lines_.size()), step, 1000.0 + static_cast<double>(lines_.size()), std::move(event)});
    return *this;
  }
  operator const std::vector<JournalLine>&() const { return lines_; }
  const std::vector<JournalLine>& lines() const { return lines_; }

 private:
  std::string key_;
  int64_t number_;
  std::vector<JournalLine> lines_;
};

inline StartEvent start(int64_t threads = 1) {
  StartEvent event;
  event.stamp = sample_stamp();
  event.stamp.threads = threads;
  event.parameters = 1000;
  event.parameters_body = 900;
  event.train_size = 2000;
  event.validation_size = 500;
  event.test_size = 10000;
  event.chance = 0.1;
  event.majority = 0.11;
  return event;
}

inline DoneEvent done(int64_t selected, double test, double flops) {
  DoneEvent event;
  event.selected_step = selected;
  event.last = {{"validation", "accuracy", 0.75, 500}};
  event.selected = {{"validation", "accuracy", 0.8, 500}, {"test", "accuracy", test, 10000}};
  event.steps = 400;
  event.examples = 400 * 32;
  event.tokens = 400 * 32 * 49;
  event.flops = flops;
  event.train_s = 5;
  event.wall_s = 6;
  event.peak_memory = 1000;
  return event;
}

inline std::vector<JournalLine> whole_attempt(const std::string& key, int64_t number, double test = 0.7, double flops = 1e9) {
  return Attempt(key, number)
      .at(0, start())
      .at(100, ProgressEvent{0.5, 1e-3, 0.01, 400, "", 0})
      .at(200, EvaluationEvent{1, {{"validation", "accuracy", 0.8, 500}, {"train", "loss", 0.3, 500}}})
      .at(200, CheckpointEvent{"last.safetensors"})
      .at(400, EvaluationEvent{2, {{"validation", "accuracy", 0.75, 500}, {"train", "loss", 0.2, 500}}})
      .at(400, ScoresEvent{"test", "accuracy", {1, 0, 1}, {4, 5, 6}, {30, 30, 31}})
      .at(400, done(200, test, flops))
      .lines();
}

inline ResultRow row_of(const Store& store, const std::string& key) {
  for (const ResultRow& row : store.results("quick"))
    if (row.job_key == key) return row;
  ADD_FAILURE() << "no row " << key;
  return {};
}

}  // namespace spt::results
