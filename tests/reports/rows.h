#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reports/report.h"

namespace spt::reports::testing_rows {

/// Hand-made rows: task `fashion` under the three arms, 5 seeds; the Transformer leads, pretraining closes about a third of its lead.
struct Sample {
  std::vector<uint64_t> seeds = {1, 2, 3, 4, 5};
  std::map<std::string, double> mean = {
      {"transformer scratch@F", 0.72}, {"transformer spt-masked@P+F", 0.78}, {"transformer scratch@(P+F)", 0.79}, {"s4d scratch@F", 0.66},
      {"s4d spt-masked@P+F", 0.75},    {"s4d scratch@(P+F)", 0.74},          {"linear scratch@F", 0.61}};
};

inline results::ResultRow sample_row(const Sample& sample, const std::string& architecture, const std::string& arm, const std::string& kind,
                                     uint64_t seed) {
  results::ResultRow row;
  row.task = "fashion";
  row.architecture = architecture;
  row.arm = arm;
  row.arm_kind = kind;
  row.protocol = kind == "spt" ? "spt-masked" : "scratch";
  row.pairs_with = kind == "matched" ? "spt-masked@P+F" : "";
  row.job_key = architecture + arm + std::to_string(seed);
  row.pretrain_key = kind == "spt" ? "pretrain-" + architecture + std::to_string(seed) : "";
  row.name = "fashion/" + architecture + "/" + arm + "/seed=" + std::to_string(seed);
  row.seed = seed;
  row.status = "done";
  row.metric = "accuracy";
  row.unit = "fraction";
  const double s = static_cast<double>(seed);
  // a part that seeds share, and a part of their own
  row.test = sample.mean.at(architecture + " " + arm) + 0.01 * std::sin(s) +
             0.008 * std::sin(s * s * static_cast<double>(arm.size() + 3 * architecture.size()));
  row.validation = *row.test + 0.005;
  row.last_validation = *row.test + 0.004;
  row.chance = row.majority = 0.1;
  row.train_size = 2000;
  row.validation_size = 500;
  row.test_size = 10000;
  row.parameters = architecture == "transformer" ? 26378 : 19210;
  row.steps = kind == "scratch" ? 400 : 1600;
  row.examples = row.steps * 32;
  row.tokens = row.examples * 49;
  row.flops = static_cast<double>(row.tokens) * static_cast<double>(row.parameters) * 6;
  row.device_s = static_cast<double>(row.steps) * (architecture == "transformer" ? 0.013 : 0.008);
  row.peak_memory = 152'000'000;
  if (kind == "matched") row.match_residual = 0;
  row.device_kind = "cpu";
  row.device_model = "A CPU";
  row.libtorch = "2.13.0+cpu";
  row.cpu_capability = "AVX512";
  row.build_id = "0123456789abcdef";
  row.threads = 1;
  return row;
}

inline ReportInput sample_input(const Sample& sample = {}) {
  ReportInput input;
  input.matrix.name = "sample";
  input.matrix.profile = "fair";
  input.matrix.mode = "finetune";
  input.matrix.reference = "transformer";
  input.matrix.seeds = sample.seeds;
  for (const char* architecture : {"transformer", "s4d"}) {
    for (const auto& [arm, kind] : {std::pair{"scratch@F", "scratch"}, {"spt-masked@P+F", "spt"}, {"scratch@(P+F)", "matched"}}) {
      for (uint64_t seed : sample.seeds) input.rows.push_back(sample_row(sample, architecture, arm, kind, seed));
    }
  }
  input.rows.push_back(sample_row(sample, "linear", "scratch@F", "scratch", sample.seeds.front()));
  input.rows.back().trivial = true;
  return input;
}

inline results::ResultRow& row_of(ReportInput& input, const std::string& architecture, const std::string& arm, uint64_t seed) {
  for (results::ResultRow& row : input.rows) {
    if (row.architecture == architecture && row.arm == arm && row.seed == seed) return row;
  }
  throw std::runtime_error("no such row");
}

inline void fail(results::ResultRow& row, const std::string& status) {
  row.status = status;
  row.test = row.validation = row.last_validation = std::nullopt;
}

/// Learning curves of every row with `evaluations` points.
inline void add_curves(ReportInput& input, int64_t evaluations) {
  for (const results::ResultRow& row : input.rows) {
    if (row.trivial) continue;
    const int64_t steps = std::max<int64_t>(400, evaluations) * (row.arm_kind == "matched" ? 4 : 1);
    const size_t first = input.curves.curves.size();
    for (const char* split : {"validation", "train"}) {
      input.curves.curves.push_back({row.job_key, row.job_key, "finetune", split, "accuracy"});
      if (row.arm_kind == "spt") input.curves.curves.push_back({row.job_key, row.pretrain_key, "pretrain", split, "loss"});
    }
    for (int64_t k = 1; k <= evaluations; ++k) {
      if (row.status == "diverged" && k > evaluations / 2) break;
      const double progress = 1 - std::exp(-5.0 * static_cast<double>(k) / static_cast<double>(evaluations));
      const double end = row.test.value_or(0.5);
      for (size_t i = first; i < input.curves.curves.size(); ++i) {
        const results::Curve& curve = input.curves.curves[i];
        const double value = 0.1 + (end - 0.1) * progress + (curve.split == "train" ? 0.06 * progress : 0);
        const bool pretraining = curve.stage == "pretrain";
        input.curves.points.push_back({i, k * (pretraining ? 3 : 1) * steps / evaluations, pretraining ? 1.2 - 0.9 * progress : value});
      }
    }
  }
}

}  // namespace spt::reports::testing_rows
