#include "harness/worker/memory.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "harness/worker/process.h"
#include "harness/worker/stage.h"
#include "models/architecture.h"

namespace spt::worker {
namespace {

tasks::TaskFacts token_facts(int64_t length) {
  tasks::TaskFacts facts;
  facts.vocabulary = 20;
  facts.max_length = length;
  facts.outputs = 10;
  facts.metrics = {{.name = "accuracy", .unit = "", .higher_is_better = true}};
  facts.train_lengths = {{length / 2, 3}, {length, 5}};
  return facts;
}

/// A stage of a registered architecture, with what it refers to.
class OwnedSubject {
 public:
  OwnedSubject(const models::Architecture& architecture, const OptionMap& options, int64_t length, const TrainOptions& train,
               const std::string& objective = "supervised")
      : architecture_(architecture),
        facts_(token_facts(length)),
        train_(train),
        objective_(protocols::make_objective(objective, {}, facts_, {})),
        spec_(model_spec(architecture, options, *objective_, facts_, train_, "fair")) {
    at::set_num_threads(1);
  }
  MemorySubject get() const { return {architecture_, spec_, *objective_, facts_, train_, "fair"}; }

 private:
  const models::Architecture& architecture_;
  tasks::TaskFacts facts_;
  TrainOptions train_;
  std::unique_ptr<protocols::Objective> objective_;
  models::ModelSpec spec_;
};

const OptionMap kSmallTransformer = {{"n_layers", int64_t{3}}, {"d_model", int64_t{32}}, {"n_heads", int64_t{4}}, {"d_ff", int64_t{64}}};

int64_t transformer_estimate(const TrainOptions& train, int64_t length = 64) {
  return estimated_memory(OwnedSubject(models::find_architecture("transformer"), kSmallTransformer, length, train).get());
}

TEST(Memory, IsEstimatedWithin30PercentForEveryArchitecture) {
  constexpr int64_t kBatch = 6, kLength = 1152;  // more layers, examples and positions than are measured
  TrainOptions train;
  train.batch = kBatch;
  for (const models::Architecture& architecture : models::architectures()) {
    const OptionMap options = architecture.sizes.empty() ? OptionMap{} : architecture.sizes.front().second;
    const OwnedSubject subject(architecture, options, kLength, train, architecture.trivial ? "supervised" : "masked");
    const auto estimated = static_cast<double>(estimated_memory(subject.get()));
    const auto counted = static_cast<double>(counted_memory(subject.get(), kBatch, kLength));
    if (counted == 0) EXPECT_EQ(estimated, 0) << architecture.name;
    else EXPECT_NEAR(estimated / counted, 1, 0.3) << architecture.name;
  }
}

TEST(Memory, IsEstimatedWhereRowsAreComputedInBlocks) {
  TrainOptions train;
  train.batch = 2;
  for (const int64_t window : {24, 256}) {
    OptionMap options = kSmallTransformer;
    options["attention"] = std::string("local");
    options["window"] = window;
    const OwnedSubject subject(models::find_architecture("transformer"), options, 2048, train);
    EXPECT_NEAR(static_cast<double>(estimated_memory(subject.get())) / static_cast<double>(counted_memory(subject.get(), 2, 2048)), 1, 0.3)
        << window;
  }
}

TEST(Memory, CountedIsWhatTheProcessGrowsBy) {
  const OptionMap options = {{"n_layers", int64_t{4}}, {"d_model", int64_t{64}}, {"n_heads", int64_t{4}}, {"d_ff", int64_t{256}}};
  TrainOptions train;
  const OwnedSubject subject(models::find_architecture("transformer"), options, 256, train);
  counted_memory(subject.get(), 1, 16);  // libraries have been loaded
  ::malloc_trim(0);                      // what other tests have freed is not there to be used again
  reset_peak_memory(at::kCPU);
  const int64_t before = peak_memory(at::kCPU);
  const int64_t counted = counted_memory(subject.get(), 32, 256);
  EXPECT_NEAR(static_cast<double>(peak_memory(at::kCPU) - before) / static_cast<double>(counted), 1, 0.3);
}

TEST(Memory, IsThatOfTheLargestPartOfABatch) {
  TrainOptions whole, parts;
  whole.batch = 3;
  parts.batch = 8;
  parts.accumulate = 3;
  EXPECT_EQ(transformer_estimate(parts), transformer_estimate(whole));
}

TEST(Memory, GrowsWithExamplesLengthDropoutPrecisionAndState) {
  TrainOptions base;
  base.batch = 8;
  const int64_t bytes = transformer_estimate(base);
  const auto with = [&](auto&& change) {
    TrainOptions train = base;
    change(train);
    return transformer_estimate(train);
  };
  EXPECT_GT(with([](TrainOptions& t) { t.batch = 16; }), bytes);
  EXPECT_GT(with([](TrainOptions& t) { t.dropout = 0.1; }), bytes);
  EXPECT_GT(with([](TrainOptions& t) { t.precision = "float64"; }), bytes * 3 / 2);
  EXPECT_LT(with([](TrainOptions& t) { t.optimizer = "sgd", t.momentum = 0; }), bytes);
  EXPECT_NEAR(static_cast<double>(transformer_estimate(base, 4096)) / static_cast<double>(transformer_estimate(base, 512)), 8, 1)
      << "attention holds no matrix of scores";
}

}  // namespace
}  // namespace spt::worker
