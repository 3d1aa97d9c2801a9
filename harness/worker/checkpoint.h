#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/safetensors.h"
#include "harness/worker/train.h"
#include "models/architecture.h"
#include "protocols/optimizer.h"
#include "results/record.h"

namespace spt::worker {

/// What a stage knows beside its tensors. Everything in it is in `last.safetensors`.
struct StageState {
  TrainTotals totals;
  int64_t evaluations = 0;                   ///< of E, done
  int64_t best_step = 0, best_index = 0;     ///< 0: nothing selected yet
  std::vector<protocols::MetricValue> best;  ///< validation metrics of the selected step
  std::vector<protocols::MetricValue> last;  ///< ... of the last evaluation
  std::vector<double> selection;             ///< selection metric of every evaluation so far
  double evaluate_s = 0, save_s = 0, wall_s = 0;
  int64_t peak_memory = 0;
  bool mixed_stamps = false;  ///< parts of it were computed under another numerics stamp
};

/// Tensor and file form. Errors: Error for a dtype that has no counterpart.
RawTensor to_raw(const at::Tensor& tensor);
at::Tensor from_raw(const RawTensor& raw);

/// Parameters and buffers by name.
std::vector<std::pair<std::string, at::Tensor>> model_tensors(const models::Model& model);

/// `last`: tensors "model.NAME", "optimizer.SLOT.NAME"; state, stage key, stamp and a SHA-256 over all of
/// it.
void save_last(const std::filesystem::path& file, const models::Model& model, const protocols::Optimizer& optimizer,
               const StageState& state, const std::string& stage_key, const results::Stamp& stamp);

/// `best`: tensors by the model's own names; step, stage key and SHA-256.
void save_best(const std::filesystem::path& file, const models::Model& model, int64_t step, const std::string& stage_key);

/// A checkpoint read back. Errors of reading: Error for a file that is truncated, altered (its hash) or of another kind.
struct LoadedLast {
  SafetensorsFile content;
  StageState state;
  std::string stage_key;
  results::Stamp stamp;
};
LoadedLast read_last(const std::filesystem::path& file);
struct LoadedBest {
  SafetensorsFile content;
  int64_t step = 0;
  std::string stage_key;
};
LoadedBest read_best(const std::filesystem::path& file);

/// Strict: every name on both sides, equal shapes and dtypes, before anything is written. Errors: Error naming the first that differs.
void restore_last(const LoadedLast& last, models::Model& model, protocols::Optimizer& optimizer, std::string_view where);
void restore_model(const SafetensorsFile& content, models::Model& model, std::string_view where);

}  // namespace spt::worker
