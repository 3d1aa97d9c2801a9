#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/base/options.h"

namespace spt {

/// A registered thing with every option spelled out.
struct ComponentSpec {
  std::string name;
  int64_t version = 1;
  OptionMap options;
  bool operator==(const ComponentSpec&) const = default;
};

/// How one stage is trained. Sources of values: definitions.md 2; fair rules: definitions.md 4.
struct TrainOptions {
  int64_t batch = 32;
  int64_t accumulate = 1;
  std::string order = "shuffled";
  int64_t bucket_batches = 16;
  double lr = 1e-3;
  double weight_decay = 0.05;
  std::string optimizer = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  std::string schedule = "cosine";
  double warmup = 0.1;
  double gamma = 0.1;
  double drop_every = 0.25;
  std::string milestones = "0.5, 0.75";
  int64_t patience = 3;
  double clip = 1.0;
  double state_lr = 1e-3;
  double dropout = 0.0;
  std::string precision = "float32";
  std::string pool = "mean";
  std::string head_hidden = "none";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("batch", self.batch, OptionInfo{.effect = "examples an update sees", .min = 1, .unit = "examples"});
    visit("accumulate", self.accumulate, OptionInfo{.effect = "equal parts the batch is computed in, to save memory", .min = 1});
    const OptionNeed bucketed{"order", {"bucketed"}};
    visit(
        "order", self.order,
        OptionInfo{
            .effect = "bucketed: batches of examples of like length, cut from pieces of the shuffled order; in no key where it is shuffled",
            .choices = {"bucketed", "shuffled"},
            .needs = bucketed});
    visit("bucket_batches", self.bucket_batches,
          OptionInfo{.effect = "batches a piece is cut into", .min = 2, .unit = "batches", .needs = bucketed});
    visit("lr", self.lr, OptionInfo{.effect = "peak learning rate", .min = 0});
    visit("weight_decay", self.weight_decay,
          OptionInfo{.effect = "decay of matrices: decoupled (adamw), or in the gradient (adam, sgd)", .min = 0});
    visit("optimizer", self.optimizer, OptionInfo{.effect = "update rule", .choices = {"adam", "adamw", "sgd"}});
    const OptionNeed adam{"optimizer", {"adam", "adamw"}};
    visit("beta1", self.beta1, OptionInfo{.effect = "decay of the first moment", .min = 0, .max = 0.999999, .needs = adam});
    visit("beta2", self.beta2, OptionInfo{.effect = "decay of the second moment", .min = 0, .max = 0.999999999, .needs = adam});
    visit("eps", self.eps, OptionInfo{.effect = "added to the root of the second moment", .min = 0, .needs = adam});
    visit("momentum", self.momentum,
          OptionInfo{.effect = "decay of the sum of gradients", .min = 0, .max = 0.999999, .needs = OptionNeed{"optimizer", {"sgd"}}});
    visit("schedule", self.schedule,
          OptionInfo{.effect = "learning rate over steps, after its warm-up; those in _warmup are published ones that begin at 0",
                     .choices = {"constant", "constant_warmup", "cosine", "cosine_warmup", "inverse_sqrt", "linear", "linear_warmup",
                                 "multistep", "plateau", "step"}});
    visit("warmup", self.warmup, OptionInfo{.effect = "share of the steps with rising learning rate", .min = 0, .max = 1});
    const OptionNeed drops{"schedule", {"multistep", "plateau", "step"}};
    visit("gamma", self.gamma, OptionInfo{.effect = "factor of the learning rate at each drop", .min = 0, .max = 1, .needs = drops});
    visit("drop_every", self.drop_every,
          OptionInfo{.effect = "share of the steps between two drops", .min = 1e-6, .max = 1, .needs = OptionNeed{"schedule", {"step"}}});
    visit("milestones", self.milestones,
          OptionInfo{.effect = "shares of the steps after which the learning rate drops, with commas",
                     .needs = OptionNeed{"schedule", {"multistep"}}});
    visit("patience", self.patience,
          OptionInfo{.effect = "evaluations in a row without a better one that are borne",
                     .min = 0,
                     .unit = "evaluations",
                     .needs = OptionNeed{"schedule", {"plateau"}}});
    visit("clip", self.clip, OptionInfo{.effect = "largest global gradient norm; 0: no limit", .min = 0});
    visit("state_lr", self.state_lr, OptionInfo{.effect = "upper limit of the learning rate of state space A, B and dt", .min = 0});
    visit("dropout", self.dropout, OptionInfo{.effect = "dropout rate of the body", .min = 0, .max = 0.99});
    visit("precision", self.precision,
          OptionInfo{.effect = "type of parameters and activations; TF32 is off", .choices = {"float32", "float64"}});
    visit(
        "pool", self.pool,
        OptionInfo{.effect = "how positions become one vector", .choices = {"first", "last", "max", "mean", "sum"}, .stage = "supervised"});
    visit("head_hidden", self.head_hidden,
          OptionInfo{.effect = "hidden layer of the head", .choices = {"none", "relu"}, .stage = "supervised"});
  }
  bool operator==(const TrainOptions&) const = default;
};

/// The options that this choice of optimizer and schedule reads, which are those that a key and a stored spec hold.
OptionMap effective_options(const TrainOptions& train);
/// Reads what effective_options wrote, strictly: all of it and nothing else. Errors: Error.
TrainOptions train_options_from_json(const nlohmann::json& json, std::string_view where);

/// The numbers of TrainOptions::milestones, each above 0 and below 1. Errors: Error naming `where`, the text and the part that is none.
std::vector<double> milestone_shares(const std::string& text, std::string_view where);

/// One training phase with everything that can change its result, except its seed.
struct StageSpec {
  std::string name;               ///< pretrain | finetune
  ComponentSpec objective;        ///< supervised | masked | causal, with its options
  std::string inputs = "subset";  ///< subset | train: what a pretraining stage reads
  TrainOptions train;
  int64_t steps = 0;
  int64_t evaluations = 0;
  bool operator==(const StageSpec&) const = default;
};

/// Weights from outside that a chain starts from (definitions.md 3, external). Its content is in the key, its place is not.
struct GivenCheckpoint {
  std::string file;
  std::string sha256;  ///< "": there is none
  bool operator==(const GivenCheckpoint&) const = default;
};

/// A job: the chain of its stages, each starting from the one before; the last is supervised.
struct JobSpec {
  ComponentSpec architecture;
  ComponentSpec task;
  std::vector<std::string>
      supervised_options;  ///< of the task: those that can change no pretraining stage (OptionInfo.stage), sorted; not in a key
  std::string data_hash;   ///< SHA-256 of the data; "" never
  std::string init = "default";
  GivenCheckpoint checkpoint;  ///< what the first stage copies its body from, after `init` has drawn it
  std::string profile = "fair";
  std::vector<StageSpec> stages;
  uint64_t seed = 0;
  std::map<std::string, uint64_t> streams;  ///< re-seeded streams
  bool operator==(const JobSpec&) const = default;
};

nlohmann::json to_json(const JobSpec& spec);
JobSpec job_from_json(const nlohmann::json& json, std::string_view where);  ///< strict; Errors: Error

/// The canonical text of stages 0..stage, and nothing a later stage alone can change; without seed and streams, which come last in the key.
/// One line of JSON, keys sorted. The text of a pretraining stage leaves out the options that belong to a supervised stage (train's and the
/// task's).
std::string cell_text(const JobSpec& spec, size_t stage);

/// Key of stage `stage`: SHA-256 of key_text: cell_text, a line break, and the JSON of seed and streams. The key of the job is that of its
/// last stage. The only function that spells a key.
std::string key_text(const std::string& cell, uint64_t seed, const std::map<std::string, uint64_t>& streams);
std::string stage_key(const JobSpec& spec, size_t stage);
std::string stage_key(const std::string& cell, uint64_t seed, const std::map<std::string, uint64_t>& streams);
std::string job_key(const JobSpec& spec);

}  // namespace spt
