#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/job.h"
#include "harness/worker/stage.h"
#include "models/architecture.h"
#include "protocols/objective.h"
#include "tasks/task.h"

namespace spt::worker::test {

/// y = x W^T + b with named draws.
struct Affine : torch::nn::Module {
  Affine(int64_t in, int64_t out) {
    weight = register_parameter("weight", torch::zeros({out, in}));
    bias = register_parameter("bias", torch::zeros({out}));
  }
  at::Tensor operator()(const at::Tensor& x) const { return torch::matmul(x, weight.t()) + bias; }
  at::Tensor weight, bias;
};

struct Table : torch::nn::Module {
  Table(int64_t rows, int64_t width) { weight = register_parameter("weight", torch::zeros({rows, width})); }
  at::Tensor weight;
};

/// A model as small as one can be that serves every kind of head: each position sees itself and the mean of its row (not if causal).
class TinyModel : public models::Model {
 public:
  static constexpr int64_t kWidth = 6;
  explicit TinyModel(const models::ModelSpec& spec) : spec_(spec) {
    if (spec.input.vocabulary > 0) table_ = register_module("encoder", std::make_shared<Table>(spec.input.vocabulary, kWidth));
    else encoder_ = register_module("encoder", std::make_shared<Affine>(spec.input.channels, kWidth));
    body_ = register_module("body", std::make_shared<Affine>(kWidth, kWidth));
    head_ = register_module("head", std::make_shared<Affine>(spec.head.kind == "retrieval" ? 2 * kWidth : kWidth, spec.head.outputs));
    counter_ = body_->register_buffer("counter", torch::zeros({2}));
  }

  at::Tensor forward(const models::ModelInput& input) override {
    const at::Tensor x =
        table_ ? table_->weight.index_select(0, input.tokens.flatten()).reshape({input.tokens.size(0), input.tokens.size(1), kWidth})
               : (*encoder_)(input.values);
    at::Tensor real = models::real_positions(input.lengths, x.size(1));
    if (!real.defined()) real = torch::ones({x.size(0), x.size(1)}, torch::kBool);
    const at::Tensor weights = real.to(x.scalar_type()).unsqueeze(-1);
    const at::Tensor mean = (x * weights).sum(1, true) / weights.sum(1, true);
    const bool causal = std::get<bool>(spec_.options.at("causal"));
    at::Tensor h = torch::tanh((*body_)(causal ? x : x + mean));
    h = torch::dropout(h, spec_.dropout, is_training());
    if (spec_.head.kind == "sequence") {
      at::Tensor y = (*head_)(h);
      if (input.decoder_tokens.defined()) return y.slice(1, 0, input.decoder_tokens.size(1));
      return input.positions.defined() ? y.flatten(0, 1).index_select(0, input.positions) : y;
    }
    const at::Tensor pooled = (h * weights).sum(1) / weights.sum(1);
    if (spec_.head.kind == "pooled") return (*head_)(pooled);
    const int64_t B = pooled.size(0) / 2;
    return (*head_)(torch::cat({pooled.slice(0, 0, B), pooled.slice(0, B)}, 1));
  }

  void reset_parameters(const Stream& init) override {
    const torch::NoGradGuard no_grad;
    for (auto& item : named_parameters()) item.value().uniform_(-0.7, 0.7, at::make_generator<at::CPUGeneratorImpl>(init.seed(item.key())));
    counter_.fill_(3);
  }

  models::ParameterRole role(const std::string& name) const override {
    if (name.ends_with("bias")) return models::ParameterRole::kBias;
    return name == "encoder.weight" && table_ ? models::ParameterRole::kEmbedding : models::ParameterRole::kMatrix;
  }

  at::Tensor decode(const models::ModelInput& input, int64_t max_length) override {
    models::ModelInput whole = input;
    whole.decoder_tokens = at::Tensor();
    whole.positions = at::Tensor();
    return forward(whole).argmax(-1).slice(1, 0, std::min(max_length, input.tokens.size(1)));
  }

 private:
  models::ModelSpec spec_;
  std::shared_ptr<Table> table_;
  std::shared_ptr<Affine> encoder_, body_, head_;
  at::Tensor counter_;
};

inline models::Architecture tiny_architecture() {
  models::Architecture tiny;
  tiny.name = "tiny";
  tiny.version = 2;
  tiny.options = {{.name = "causal", .default_value = false, .info = {.effect = "positions see themselves alone"}}};
  tiny.causal = {{"causal", true}};
  tiny.build_model = [](const models::ModelSpec& spec) { return std::make_shared<TinyModel>(spec); };
  tiny.model_flops = [](const models::ModelSpec& spec, int64_t length) {
    return models::Flops{100, 72.0 * static_cast<double>(length) +
                                  12.0 * static_cast<double>(spec.head.outputs) * spec.head.share * static_cast<double>(length)};
  };
  return tiny;
}

/// Called before each batch is made: a place to interfere from.
inline std::function<void()>& on_batch() {
  static std::function<void()> hook;
  return hook;
}

/// Examples made from their number: rows of 3 to 12 tokens of 4..11, or of 2 channels.
class TinyDataset : public tasks::Dataset {
 public:
  TinyDataset(std::string kind, int64_t first, int64_t size, bool ragged = true)
      : kind_(std::move(kind)), first_(first), size_(size), ragged_(ragged) {}
  int64_t size() const override { return size_; }
  int64_t length(int64_t i) const override { return kind_ == "pairs" ? std::max(row_length(i, 0), row_length(i, 1)) : row_length(i, 0); }
  /// Of one document of an example.
  int64_t row_length(int64_t i, int64_t document) const {
    return ragged_ ? 3 + static_cast<int64_t>(SplitMix64(first_ + i + 5000 * document)() % 10) : 8;
  }
  int64_t cluster(int64_t i) const override { return kind_ == "regression" ? i / 4 : -1; }
  int64_t label(int64_t i) const override {
    if (kind_ == "regression" || kind_ == "sequence-to-sequence") return -1;
    int64_t fours = 0;
    for (const int64_t t : row(i, 0)) fours += t >= 8 ? 1 : -1;
    return fours > 0 ? 1 : 0;
  }
  tasks::Batch batch(std::span<const int64_t> indices) const override {
    if (on_batch()) on_batch()();
    const int64_t B = static_cast<int64_t>(indices.size()), documents = kind_ == "pairs" ? 2 : 1;
    int64_t L = 0;
    for (const int64_t i : indices) L = std::max(L, length(i));
    tasks::Batch batch;
    batch.documents = documents;
    at::Tensor tokens = torch::full({documents * B, L}, 1, torch::kInt64);
    batch.lengths = torch::empty({documents * B}, torch::kInt64);
    batch.labels = torch::empty({B}, torch::kInt64);
    batch.example_ids = torch::empty({B}, torch::kInt64);
    for (int64_t d = 0; d < documents; ++d)
      for (int64_t b = 0; b < B; ++b) {
        const std::vector<int64_t> ids = row(indices[b], d);
        for (size_t l = 0; l < ids.size(); ++l) tokens[d * B + b][static_cast<int64_t>(l)] = ids[l];
        batch.lengths[d * B + b] = static_cast<int64_t>(ids.size());
      }
    for (int64_t b = 0; b < B; ++b) {
      batch.labels[b] = label(indices[b]);
      batch.example_ids[b] = first_ + indices[b];
    }
    if (kind_ == "regression") {
      const at::Tensor real = models::real_positions(batch.lengths, L);
      batch.values = torch::stack({tokens.to(torch::kFloat32) / 8 - 1, (tokens % 3).to(torch::kFloat32)}, -1);
      if (real.defined()) batch.values = batch.values.masked_fill(~real.unsqueeze(-1), 0);
      batch.targets = (batch.values.sum(1) / batch.lengths.unsqueeze(-1)).to(torch::kFloat32);
    } else {
      batch.tokens = tokens;
    }
    if (kind_ == "sequence-to-sequence") {  // copy the first half
      batch.decoder_lengths = (batch.lengths + 1).floor_divide(2);
      const int64_t T = batch.decoder_lengths.max().item<int64_t>();
      batch.decoder_tokens = tokens.slice(1, 0, T).masked_fill(torch::arange(T).unsqueeze(0) >= batch.decoder_lengths.unsqueeze(1), 1);
    }
    return batch;
  }

 private:
  std::vector<int64_t> row(int64_t i, int64_t document) const {
    SplitMix64 draw(1000 * (first_ + i) + document);
    std::vector<int64_t> ids(row_length(i, document));
    for (int64_t& id : ids) id = 4 + static_cast<int64_t>(draw.below(8));
    return ids;
  }
  const std::string kind_;
  const int64_t first_, size_;
  const bool ragged_;
};

inline tasks::TaskFacts tiny_facts(const std::string& kind, int64_t train = 40) {
  tasks::TaskFacts facts;
  facts.kind = kind == "pairs" ? "classification" : kind;
  facts.vocabulary = kind == "regression" ? 0 : 12;
  facts.channels = kind == "regression" ? 2 : 0;
  facts.max_length = 12;
  facts.documents = kind == "pairs" ? 2 : 1;
  facts.outputs = kind == "sequence-to-sequence" ? 6 : 2;
  facts.mask_ratio = 0.3;
  facts.metrics = {{.name = kind == "regression"             ? "r2"
                            : kind == "sequence-to-sequence" ? "exact_match"
                                                             : "accuracy",
                    .unit = "",
                    .higher_is_better = true}};
  facts.train_size = train;
  facts.validation_size = 70;
  facts.test_size = 30;
  facts.data_hash = std::string(64, 'a');
  facts.data_source = "made in memory";
  const TinyDataset data(kind, 0, train);
  std::map<int64_t, int64_t> lengths;
  for (int64_t i = 0; i < train; ++i)
    for (int64_t document = 0; document < facts.documents; ++document) ++lengths[data.row_length(i, document)];
  facts.train_lengths.assign(lengths.begin(), lengths.end());
  return facts;
}

/// Task "tiny-<kind>".
inline tasks::Task tiny_task(const std::string& kind) {
  tasks::Task task;
  task.name = "tiny-" + kind;
  task.version = 3;
  task.facts = [kind](const OptionMap&, const std::filesystem::path&) { return tiny_facts(kind); };
  task.open = [kind](const OptionMap&, const std::filesystem::path&, const Stream&) {
    tasks::OpenedTask opened;
    opened.facts = tiny_facts(kind);
    opened.train = opened.unlabelled_train = std::make_shared<TinyDataset>(kind, 0, 40);
    opened.validation = std::make_shared<TinyDataset>(kind, 100, 70);
    opened.test = std::make_shared<TinyDataset>(kind, 200, 30);
    opened.notes = {"no duplicates"};
    return opened;
  };
  return task;
}

inline Registry tiny_registry() {
  static const models::Architecture kTiny = tiny_architecture();
  static const std::vector<tasks::Task> kTasks = {tiny_task("classification"), tiny_task("pairs"), tiny_task("regression"),
                                                  tiny_task("sequence-to-sequence")};
  return {.architecture = [](const std::string& name) -> const models::Architecture& {
            if (name != kTiny.name) throw Error("unknown architecture '{}'", name);
            return kTiny;
          },
          .task = [](const std::string& name) -> const tasks::Task& {
            for (const tasks::Task& task : kTasks)
              if (task.name == name) return task;
            throw Error("unknown task '{}'", name);
          }};
}

/// Pretraining (masked or causal; "" for none), then the task.
inline JobSpec tiny_job(const std::string& kind, const std::string& pretraining = "") {
  JobSpec job;
  job.architecture = {.name = "tiny", .version = 2, .options = {{"causal", pretraining == "causal"}}};
  job.task = {.name = "tiny-" + kind, .version = 3, .options = {}};
  job.data_hash = std::string(64, 'a');
  job.seed = 5;
  TrainOptions train;
  train.batch = 16;
  train.lr = 0.02;
  train.dropout = 0.1;
  if (!pretraining.empty()) {
    StageSpec stage{
        .name = "pretrain", .objective = {.name = pretraining, .version = 1, .options = {}}, .train = train, .steps = 14, .evaluations = 3};
    if (pretraining == "masked") stage.objective.options = {{"ratio", 0.0}};
    job.stages.push_back(stage);
  }
  job.stages.push_back({.name = "finetune",
                        .objective = {.name = "supervised", .version = 1, .options = {}},
                        .train = train,
                        .steps = 23,
                        .evaluations = 4});
  return job;
}

}  // namespace spt::worker::test
