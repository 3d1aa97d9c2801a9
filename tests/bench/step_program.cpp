// One training step of the configurations that tests/bench/peers names, timed the way peers/bench_step.py does it: random data prepared
// beforehand; zero_grad, forward, loss, backward, clipping at 1.0, fused AdamW. One JSON object on standard output.
//   spt-step-bench --configuration s4d-image-1k [--size cpu|paper] [--objective supervised|masked] [--threads N] [--steps N] [--warmup N]
#include <malloc.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/architecture.h"
#include "protocols/objective.h"
#include "protocols/optimizer.h"

namespace spt {
namespace {

using Clock = std::chrono::steady_clock;

struct Configuration {
  std::string name, size, architecture;
  OptionMap options;
  int64_t length, vocabulary, outputs, batch;
};

OptionMap mega_options(int64_t n_layers, int64_t width, int64_t z, int64_t v) {
  return {{"n_layers", n_layers},        {"d_model", width},  {"d_attention", z},      {"d_value", v},
          {"d_state", int64_t{16}},      {"d_ff", 2 * width}, {"chunk", int64_t{128}}, {"attention", std::string("laplace")},
          {"norm", std::string("batch")}};
}

const std::vector<Configuration>& configurations() {
  static const std::vector<Configuration> kAll = {
      {"transformer-text-1k",
       "cpu",
       "transformer",
       {{"n_layers", int64_t{4}}, {"d_model", int64_t{64}}, {"n_heads", int64_t{4}}, {"d_ff", int64_t{256}}},
       1024,
       136,
       2,
       8},
      {"transformer-text-1k",
       "paper",
       "transformer",
       {{"n_layers", int64_t{6}}, {"d_model", int64_t{512}}, {"n_heads", int64_t{8}}, {"d_ff", int64_t{1024}}},
       1024,
       136,
       2,
       64},
      {"transformer-image-1k",
       "cpu",
       "transformer",
       {{"n_layers", int64_t{3}}, {"d_model", int64_t{64}}, {"n_heads", int64_t{4}}, {"d_ff", int64_t{128}}},
       1024,
       0,
       10,
       16},
      {"transformer-image-1k",
       "paper",
       "transformer",
       {{"n_layers", int64_t{6}},
        {"d_model", int64_t{256}},
        {"n_heads", int64_t{4}},
        {"d_ff", int64_t{512}},
        {"position", std::string("rotary")}},
       1024,
       0,
       10,
       64},
      {"s4d-image-1k", "cpu", "s4d", {{"n_layers", int64_t{6}}, {"d_model", int64_t{64}}, {"d_state", int64_t{64}}}, 1024, 0, 10, 16},
      {"s4d-image-1k", "paper", "s4d", {{"n_layers", int64_t{6}}, {"d_model", int64_t{512}}, {"d_state", int64_t{64}}}, 1024, 0, 10, 50},
      {"s4-image-1k",
       "cpu",
       "s4",
       {{"n_layers", int64_t{6}},
        {"d_model", int64_t{64}},
        {"d_state", int64_t{64}},
        {"n_ssm", int64_t{2}},
        {"norm_position", std::string("post")}},
       1024,
       0,
       10,
       16},
      {"s4-image-1k",
       "paper",
       "s4",
       {{"n_layers", int64_t{6}},
        {"d_model", int64_t{512}},
        {"d_state", int64_t{64}},
        {"n_ssm", int64_t{2}},
        {"norm_position", std::string("post")}},
       1024,
       0,
       10,
       50},
      {"mega-image-1k", "cpu", "mega", mega_options(4, 64, 32, 128), 1024, 0, 10, 16},
      {"mega-image-1k", "paper", "mega", mega_options(8, 160, 64, 320), 1024, 0, 10, 50},
      {"dlr-listops-2k",
       "cpu",
       "dlr",
       {{"n_layers", int64_t{4}}, {"d_model", int64_t{64}}, {"d_state", int64_t{256}}, {"norm_position", std::string("post")}},
       2048,
       19,
       10,
       8},
      {"dlr-listops-2k",
       "paper",
       "dlr",
       {{"n_layers", int64_t{8}}, {"d_model", int64_t{128}}, {"d_state", int64_t{1024}}, {"norm_position", std::string("post")}},
       2048,
       19,
       10,
       50},
  };
  return kAll;
}

tasks::TaskFacts facts_of(const Configuration& c) {
  tasks::TaskFacts facts;
  facts.vocabulary = c.vocabulary;
  facts.channels = c.vocabulary ? 0 : 1;
  facts.max_length = c.length;
  facts.outputs = c.outputs;
  facts.mask_ratio = c.vocabulary ? 0.15 : 0.5;
  facts.metrics = {{.name = "accuracy", .unit = "", .higher_is_better = true}};
  facts.train_lengths = {{c.length, 1}};
  return facts;
}

tasks::Batch random_batch(const Configuration& c) {
  tasks::Batch batch;
  if (c.vocabulary) batch.tokens = torch::randint(1, c.vocabulary, {c.batch, c.length}, torch::kInt64);
  else batch.values = torch::randn({c.batch, c.length, 1});
  batch.lengths = torch::full({c.batch}, c.length, torch::kInt64);
  batch.labels = torch::randint(0, c.outputs, {c.batch}, torch::kInt64);
  batch.example_ids = torch::arange(c.batch);
  return batch;
}

struct Result {
  std::vector<double> milliseconds;
  double loss = 0;
  int64_t parameters = 0;
};

Result measure(const Configuration& c, const std::string& objective_name, int64_t warmup, int64_t steps) {
  const tasks::TaskFacts facts = facts_of(c);
  const auto objective = protocols::make_objective(objective_name, {}, facts, {});
  const models::Architecture& architecture = models::find_architecture(c.architecture);
  const models::ModelSpec spec{.options = complete(architecture.options, c.options, c.architecture),
                               .input = objective->input(facts),
                               .head = objective->head(facts)};
  const auto model = models::build_model(architecture, spec);
  model->reset_parameters(Rng(0).stream("init"));
  model->train();
  protocols::AdamW optimizer(protocols::trained_tensors(*model, {.lr = 1e-3, .weight_decay = 0.05}), {});
  std::vector<protocols::Prepared> batches;
  for (uint64_t i = 0; i < 4; ++i) batches.push_back(objective->prepare(random_batch(c), i, Rng(0).stream("mask")));
  Result result;
  for (const auto& p : model->parameters()) result.parameters += p.numel();
  for (int64_t i = 0; i < warmup + steps; ++i) {
    const auto start = Clock::now();
    const protocols::Prepared& batch = batches[static_cast<size_t>(i) % batches.size()];
    optimizer.zero_grad();
    const at::Tensor loss = objective->loss_sum(model->forward(batch.input), batch) / static_cast<double>(batch.count);
    loss.backward();
    optimizer.clip(1.0);
    optimizer.step(1.0);
    if (i >= warmup) result.milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    result.loss = loss.item<double>();
  }
  return result;
}

int run(int count, char** arguments) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);  // as the worker does
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  CLI::App app("Times one training step.");
  std::string name, size = "cpu", objective = "supervised";
  int64_t threads = 1, warmup = 3, steps = 20;
  std::vector<std::string> names;
  for (const Configuration& c : configurations()) names.push_back(c.name);
  app.add_option("--configuration", name)->required()->check(CLI::IsMember(names));
  app.add_option("--size", size)->check(CLI::IsMember({"cpu", "paper"}));
  app.add_option("--objective", objective)->check(CLI::IsMember({"supervised", "masked"}));
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--warmup", warmup)->check(CLI::NonNegativeNumber);
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, arguments);
  at::set_num_threads(static_cast<int>(threads));
  torch::manual_seed(0);
  const auto& all = configurations();
  const auto c = std::find_if(all.begin(), all.end(), [&](const Configuration& x) { return x.name == name && x.size == size; });
  Result result = measure(*c, objective, warmup, steps);
  std::sort(result.milliseconds.begin(), result.milliseconds.end());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const nlohmann::json out = {{"configuration", name},
                              {"size", size},
                              {"objective", objective},
                              {"threads", threads},
                              {"steps", steps},
                              {"ms_per_step", result.milliseconds[result.milliseconds.size() / 2]},
                              {"parameters", result.parameters},
                              {"loss", result.loss},
                              {"peak_rss_mib", usage.ru_maxrss / 1024}};
  std::cout << out.dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace spt

int main(int count, char** arguments) { return spt::run(count, arguments); }
