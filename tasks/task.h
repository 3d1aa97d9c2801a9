#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/base/options.h"
#include "harness/base/rng.h"

namespace spt::tasks {

enum class Split { kTrain, kValidation, kTest };
const char* split_name(Split split);

/// Examples as they come from a dataset. Exactly one of tokens and values is defined; rows are right-padded (token 1 = <pad>, value 0).
struct Batch {
  at::Tensor tokens;           ///< (B, L) int64
  at::Tensor values;           ///< (B, L, channels) float32
  at::Tensor lengths;          ///< (B) int64, real positions incl. <eos>
  at::Tensor labels;           ///< (B) int64 class, classification
  at::Tensor targets;          ///< (B, K) float32, regression
  at::Tensor example_ids;      ///< (B) int64, unique over all splits of the task: masks are functions of it
  int64_t documents = 1;       ///< 2: tokens and lengths have 2B rows, first documents before second ones; labels have B
  at::Tensor decoder_tokens;   ///< (B, T) int64 target sequences, encoder-decoder tasks
  at::Tensor decoder_lengths;  ///< (B) int64
};

/// One split in memory. Const and safe to call from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual Batch batch(std::span<const int64_t> indices) const = 0;  ///< padded to the longest row of the batch
  virtual int64_t length(int64_t index) const = 0;                  ///< of one example, for cost estimates
  virtual int64_t label(int64_t index) const = 0;                   ///< class, or -1
  virtual int64_t cluster(int64_t) const {
    return -1;
  }  ///< number shared by examples that depend on each other; -1: this stands for itself
};

struct MetricFacts {
  std::string name;  ///< accuracy, r2, mae, ...
  std::string unit;  ///< "" for a fraction
  bool higher_is_better = true;
};

/// What a task is, as far as planning needs it. Computed from its options; from the data only where nothing else tells.
struct TaskFacts {
  std::string kind = "classification";  ///< classification | regression | sequence-to-sequence
  int64_t vocabulary = 0;               ///< tokens, specials included; 0 for values
  int64_t channels = 0;                 ///< values a position; 0 for tokens
  int64_t max_length = 0;
  std::vector<std::pair<int64_t, int64_t>>
      train_lengths;    ///< (length, how many rows of train), by length; documents of an example are rows
  int64_t outputs = 0;  ///< classes, or regression targets
  int64_t documents = 1;
  std::string value_loss = "mae";    ///< pretraining on values: mae | levels (256 classes)
  double mask_ratio = 0.15;          ///< default of masked objectives
  std::vector<MetricFacts> metrics;  ///< first: the primary one
  int64_t train_size = 0, validation_size = 0, test_size = 0;
  std::string data_hash;    ///< SHA-256 that enters the job's key
  std::string data_source;  ///< where the data come from, for people
  bool partial = false;     ///< not the whole official set
};

/// The data of a task, split. Errors of opening: DataError when data are absent or not those of `expected_hash`.
struct OpenedTask {
  TaskFacts facts;
  std::shared_ptr<const Dataset> train, validation, test;
  std::shared_ptr<const Dataset> unlabelled_train;  ///< all train inputs, for pretrain_inputs = "train"; may equal train
  std::vector<std::string> notes;                   ///< split hygiene: duplicates between splits, dropped examples, ...
};

/// A registered task.
struct Task {
  std::string name;
  int version = 1;
  std::string summary;
  std::string source;
  std::string leaks;  ///< what the published data or splits have in two splits; "": no example is in two
  std::vector<OptionSchema> options;
  std::function<void(const OptionMap&)> validate;  ///< conditions between options; may be empty
  std::function<TaskFacts(const OptionMap&, const std::filesystem::path& data_root)> facts;
  /// Splits follow the option split_seed, subsets `subset` (a job's stream, so that subsets are nested). Test examples are in dataset
  /// order.
  std::function<OpenedTask(const OptionMap&, const std::filesystem::path& data_root, const Stream& subset)> open;
};

const std::vector<Task>& tasks();                ///< sorted by name
const Task& find_task(const std::string& name);  ///< Errors: Error with the known names

}  // namespace spt::tasks
