#pragma once

#include <string>
#include <vector>

#include "harness/worker_client.h"

namespace spt::testing_catalog {

/// Answers from formulas, without a worker: tokens a step = batch x 10; FLOPs a step = batch x 1000, pretraining twice that;
/// bytes = batch x 1,000,000.
class FakeWorker final : public WorkerClient {
 public:
  Catalog catalog() override { return catalog_; }

  DescribeAnswer describe(const DescribeQuery& query) override {
    ++describe_calls;
    DescribeAnswer answer;
    for (const TaskQuery& task : query.tasks) {
      TaskAnswer a;
      a.kind = "classification", a.data_hash = "hash of " + task.name, a.data_source = "official", a.mean_length = 10, a.mask_ratio = 0.15;
      a.train_size = 1000, a.validation_size = 100, a.test_size = 200, a.metric = "accuracy";
      if (task.name == "broken") a.error = "its data are not there";
      answer.tasks.push_back(a);
    }
    for (const ModelQuery& model : query.models) {
      ModelAnswer a;
      const auto batch = static_cast<double>(model.train.batch);
      a.parameters = 1000, a.parameters_body = 900, a.tokens_per_step = batch * 10, a.peak_memory = model.train.batch * 1'000'000;
      a.flops_per_step = batch * 1000 * (model.objective.name == "supervised" ? 1.0 : pretrain_flops);
      a.groups = {{"encoder.weight", {11, 32}, "embedding", model.train.lr, 0},
                  {"body.weight", {32, 32}, "matrix", model.train.lr, 0.05},
                  {"body.scale", {}, model.profile, 0.001, 0}};
      if (model.architecture.name == "linear" && model.task.name == "fashion") a.error = "needs tokens";
      answer.models.push_back(a);
      asked_models.push_back(model);
    }
    return answer;
  }

  std::vector<std::vector<ProbeAnswer>> probe(const ProbeQuery& query) override {
    probes.push_back(query);
    std::vector<std::vector<ProbeAnswer>> answers;
    for (const JobSpec& job : query.jobs) answers.emplace_back(job.stages.size(), ProbeAnswer{"", 1, 2, 0.01, 0.001});
    return answers;
  }

  ConvertAnswer convert(const ConvertQuery& query) override {
    conversions.push_back(query);
    return {{{"theirs", "ours"}}, {"left"}, "hash"};
  }

  Catalog catalog_ = make_catalog();
  int describe_calls = 0;
  double pretrain_flops = 2;
  std::vector<ModelQuery> asked_models;
  std::vector<ProbeQuery> probes;
  std::vector<ConvertQuery> conversions;

 private:
  static Catalog make_catalog() {
    Catalog c;
    c.build_id = "build", c.libtorch = "2.13.0", c.compiler = "gcc";
    const OptionSchema width{"d_model", int64_t{32}, {.effect = "width", .min = 1}},
        depth{"n_layers", int64_t{2}, {.effect = "depth", .min = 1}};
    const OptionSchema causal{"causal", false, {.effect = "sees the past only"}};
    c.architectures = {{"gru", 1, "gated recurrence", "paper G", {width}, {}, false, {}},
                       {"linear", 1, "a linear model", "", {}, {}, true, {}},
                       {"majority", 1, "the most frequent class", "", {}, {}, true, {}},
                       {"s4d",
                        1,
                        "a diagonal state space model",
                        "paper S",
                        {width, depth, causal},
                        {{"causal", true}},
                        false,
                        {{"100K", {{"d_model", int64_t{64}}}}}},
                       {"transformer",
                        1,
                        "attention",
                        "paper T",
                        {width, depth, causal},
                        {{"causal", true}},
                        false,
                        {{"100K", {{"d_model", int64_t{48}}}}}}};
    const OptionSchema patch{"patch", int64_t{1}, {.effect = "pixels a step", .min = 1}};
    const OptionSchema loss{"loss", std::string("mae"), {.effect = "loss of regression", .stage = "supervised"}};
    c.tasks = {{"broken", 1, "", "", {}}, {"fashion", 1, "clothes", "paper F", {patch, loss}}, {"listops", 1, "", "", {}}};
    const OptionSchema ratio{"ratio", 0.0, {.effect = "share hidden", .min = 0, .max = 1}};
    const OptionSchema inputs{"pretrain_inputs", std::string("subset"), {.effect = "inputs", .choices = {"subset", "train"}}};
    const OptionSchema init{"init", std::string("default"), {.effect = "init", .choices = {"default", "normal"}}};
    c.objectives = {{"causal", 1, {}}, {"masked", 1, {ratio}}, {"supervised", 1, {}}};
    c.protocols = {{"scratch", 1, "no pretraining", "", {init}, false, {{"finetune", "supervised", {}}}},
                   {"spt-causal", 1, "", "", {inputs}, true, {{"pretrain", "causal", {}}, {"finetune", "supervised", {}}}},
                   {"spt-masked",
                    1,
                    "fill in hidden positions",
                    "paper P",
                    {inputs, init, ratio},
                    false,
                    {{"pretrain", "masked", {{"ratio", "ratio"}}}, {"finetune", "supervised", {}}}}};
    c.recipes = {{"s4d",
                  "[[recipe]]\nsource = \"page 1\"\ntrain = { lr = 0.004 }\n[[recipe]]\ntask = \"listops\"\nsource = \"page 2\"\ntrain = { "
                  "lr = 0.002 }\n"}};
    return c;
  }
};

}  // namespace spt::testing_catalog
