#include "protocols/objective.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "protocols/losses.h"
#include "protocols/masking.h"

namespace spt::protocols {
namespace {

tasks::TaskFacts token_facts() {
  tasks::TaskFacts facts;
  facts.vocabulary = 19;
  facts.max_length = 64;
  facts.outputs = 10;
  facts.mask_ratio = 0.15;
  facts.metrics = {{.name = "accuracy", .unit = "", .higher_is_better = true}};
  return facts;
}

tasks::TaskFacts value_facts(int64_t channels) {
  tasks::TaskFacts facts = token_facts();
  facts.vocabulary = 0;
  facts.channels = channels;
  return facts;
}

tasks::Batch token_batch(const std::vector<int64_t>& lengths, int64_t first_id = 0) {
  const int64_t B = static_cast<int64_t>(lengths.size());
  const int64_t L = *std::max_element(lengths.begin(), lengths.end());
  tasks::Batch batch;
  batch.lengths = torch::tensor(lengths);
  batch.tokens = torch::randint(4, 19, {B, L}, torch::kInt64);
  for (int64_t b = 0; b < B; ++b) batch.tokens[b].slice(0, lengths[b]).fill_(kPadToken);
  batch.labels = torch::randint(0, 10, {B}, torch::kInt64);
  batch.example_ids = torch::arange(first_id, first_id + B);
  return batch;
}

TEST(MaskedObjective, HidesARatioWithinBinomialBoundsAndNeverPads) {
  const auto objective = make_objective("masked", {{"ratio", 0.3}}, token_facts(), {});
  int64_t hidden = 0, real = 0;
  for (int64_t k = 0; k < 50; ++k) {
    const tasks::Batch batch = token_batch({64, 10, 33, 1}, 4 * k);
    const Prepared prepared = objective->prepare(batch, 0, Stream(1, "mask"));
    hidden += prepared.count;
    real += prepared.tokens;
    const at::Tensor rows = prepared.input.positions.div(64, "floor"), columns = prepared.input.positions.remainder(64);
    EXPECT_TRUE((columns < batch.lengths.index_select(0, rows)).all().item<bool>());
  }
  EXPECT_EQ(real, 50 * 108);
  EXPECT_NEAR(static_cast<double>(hidden) / static_cast<double>(real), 0.3, 4 * std::sqrt(0.3 * 0.7 / static_cast<double>(real)));
}

TEST(MaskedObjective, UsesTheTasksRatioWhenNoneIsGiven) {
  tasks::TaskFacts facts = token_facts();
  facts.mask_ratio = 1.0;
  const auto objective = make_objective("masked", {}, facts, {});
  EXPECT_EQ(objective->prepare(token_batch({5, 3}), 0, Stream(1, "mask")).count, 8);
  EXPECT_DOUBLE_EQ(objective->expected_positions(7), 7.0);
}

TEST(MaskedObjective, AMaskDependsOnEpochAndExampleAlone) {
  const auto objective = make_objective("masked", {{"ratio", 0.5}}, token_facts(), {});
  const Stream mask(3, "mask");
  const tasks::Batch all = token_batch({64, 64, 64});
  const auto hidden_of_last = [&](const tasks::Batch& batch, int64_t row, uint64_t epoch) {
    return objective->prepare(batch, epoch, mask).input.tokens[row].eq(kMaskToken);
  };
  tasks::Batch last = all;
  for (at::Tensor* t : {&last.tokens, &last.lengths, &last.labels, &last.example_ids}) *t = t->slice(0, 2);
  EXPECT_TRUE(torch::equal(hidden_of_last(all, 2, 7), hidden_of_last(last, 0, 7)));
  EXPECT_FALSE(torch::equal(hidden_of_last(all, 2, 7), hidden_of_last(all, 2, 8)));
  EXPECT_FALSE(torch::equal(hidden_of_last(all, 1, 7), hidden_of_last(all, 2, 7)));
  const std::vector<uint64_t> epochs = {6, 6, 8};
  const at::Tensor mixed = objective->prepare(all, std::span<const uint64_t>(epochs), mask).input.tokens[2].eq(kMaskToken);
  EXPECT_TRUE(torch::equal(mixed, hidden_of_last(all, 2, 8)));
}

TEST(MaskedObjective, TargetsAreTheHiddenTokensAndNothingElseMatters) {
  const auto objective = make_objective("masked", {{"ratio", 0.4}}, token_facts(), {});
  const Stream mask(3, "mask");
  const tasks::Batch batch = token_batch({20, 12});
  const Prepared prepared = objective->prepare(batch, 1, mask);
  EXPECT_TRUE(torch::equal(prepared.target, batch.tokens.flatten().index_select(0, prepared.input.positions)));
  const at::Tensor logits = torch::randn({prepared.count, 19});
  const double loss = objective->loss_sum(logits, prepared).item<double>();
  tasks::Batch other = batch;  // other tokens where nothing is hidden
  other.tokens = torch::where(prepared.input.tokens.eq(kMaskToken), batch.tokens, torch::full_like(batch.tokens, 9));
  EXPECT_EQ(loss, objective->loss_sum(logits, objective->prepare(other, 1, mask)).item<double>());
  tasks::Batch changed = batch;  // one hidden token changed: the loss must change
  changed.tokens = batch.tokens.clone();
  changed.tokens.view(-1)[prepared.input.positions[0].item<int64_t>()] =
      batch.tokens.view(-1)[prepared.input.positions[0]].item<int64_t>() == 5 ? 6 : 5;
  EXPECT_NE(loss, objective->loss_sum(logits, objective->prepare(changed, 1, mask)).item<double>());
}

TEST(MaskedObjective, ValuesGetAnIndicatorChannelAndZeros) {
  const auto objective = make_objective("masked", {{"ratio", 0.5}}, value_facts(3), {});
  tasks::Batch batch;
  batch.values = torch::randn({2, 16, 3}) + 5;
  batch.lengths = torch::tensor({16, 16});
  batch.example_ids = torch::arange(2);
  const Prepared prepared = objective->prepare(batch, 0, Stream(1, "mask"));
  ASSERT_EQ(prepared.input.values.sizes(), (std::vector<int64_t>{2, 16, 4}));
  const at::Tensor indicator = prepared.input.values.select(2, 3);
  EXPECT_EQ(indicator.sum().item<int64_t>(), prepared.count);
  EXPECT_EQ(prepared.input.values.slice(2, 0, 3).abs().sum(2).mul(indicator).sum().item<double>(), 0);
  EXPECT_EQ(objective->input(value_facts(3)).channels, 4);
  EXPECT_EQ(objective->head(value_facts(3)).outputs, 3);
  EXPECT_FALSE(prepared.input.lengths.defined());  // no padding: no masks for the model to make
}

TEST(MaskedObjective, PairsAreMaskedApart) {
  const auto objective = make_objective("masked", {{"ratio", 0.5}}, token_facts(), {});
  tasks::Batch batch = token_batch({64, 64, 64, 64});
  batch.documents = 2;
  batch.example_ids = torch::arange(2);
  const at::Tensor hidden = objective->prepare(batch, 0, Stream(1, "mask")).input.tokens.eq(kMaskToken);
  EXPECT_FALSE(torch::equal(hidden[0], hidden[2]));
}

TEST(MaskedObjective, LevelsArePredictedAsClasses) {
  tasks::TaskFacts facts = value_facts(1);
  facts.value_loss = "levels";
  const auto objective = make_objective("masked", {{"ratio", 1.0}}, facts, {});
  tasks::Batch batch;
  const at::Tensor level = torch::arange(256).reshape({1, 256, 1});
  batch.values = (level.to(torch::kFloat32) / 255.0 - 0.5) / 0.5;
  batch.lengths = torch::tensor({256});
  batch.example_ids = torch::arange(1);
  EXPECT_TRUE(torch::equal(objective->prepare(batch, 0, Stream(1, "mask")).target, level.flatten()));
  EXPECT_EQ(objective->head(facts).outputs, 256);
}

TEST(CausalObjective, EachPositionPredictsTheNextAndTheLastNothing) {
  const auto objective = make_objective("causal", {}, token_facts(), {});
  const tasks::Batch batch = token_batch({5, 2, 1});
  const Prepared prepared = objective->prepare(batch, 0, Stream(1, "mask"));
  EXPECT_EQ(prepared.count, 4 + 1 + 0);
  EXPECT_TRUE(torch::equal(prepared.input.positions, torch::tensor({0, 1, 2, 3, 5})));
  EXPECT_TRUE(torch::equal(prepared.target.slice(0, 0, 4), batch.tokens[0].slice(0, 1, 5)));
  EXPECT_EQ(prepared.target[4].item<int64_t>(), batch.tokens[1][1].item<int64_t>());
  EXPECT_TRUE(torch::equal(prepared.input.tokens, batch.tokens));
  EXPECT_TRUE(find_objective("causal").needs_causal);
}

TEST(SupervisedObjective, MetricsComeFromSumsNotFromMeansOfBatches) {
  const auto objective = make_objective("supervised", {}, token_facts(), {});
  const tasks::Batch large = token_batch({3, 3, 3, 3, 3}), small = token_batch({4});
  const auto metrics = objective->metrics();
  int64_t correct = 0;
  double loss = 0;
  for (const tasks::Batch* batch : {&large, &small}) {
    const Prepared prepared = objective->prepare(*batch, 0, Stream(1, "mask"));
    at::Tensor logits = torch::randn({prepared.examples, 10}, torch::kFloat64);
    if (batch == &small) logits[0][batch->labels[0].item<int64_t>()] = 100;
    metrics->add(logits, prepared);
    correct += logits.argmax(1).eq(batch->labels).sum().item<int64_t>();
    loss += objective->loss_sum(logits, prepared).item<double>();
  }
  const auto values = metrics->values();
  EXPECT_EQ(values[0].name, "loss");
  EXPECT_NEAR(values[0].value, loss / 6, 1e-12);
  EXPECT_EQ(values[1].value, static_cast<double>(correct) / 6);
  EXPECT_EQ(values[1].n, 6);
  ASSERT_EQ(metrics->scores().size(), 6u);
  EXPECT_EQ(metrics->scores()[5], 1.0f);
  EXPECT_EQ(metrics->predicted()[5], small.labels[0].item<int64_t>());
}

TEST(SupervisedObjective, RegressionGivesErrorsAndOneR2) {
  tasks::TaskFacts facts = value_facts(2);
  facts.kind = "regression";
  facts.outputs = 2;
  facts.metrics = {{.name = "r2", .unit = "", .higher_is_better = true}};
  const auto objective = make_objective("supervised", {}, facts, {});
  EXPECT_EQ(objective->selection().name, "r2");
  const auto metrics = objective->metrics();
  const at::Tensor y = torch::randn({9, 2}, torch::kFloat64) + 1000, p = y + torch::randn({9, 2}, torch::kFloat64) * 0.3;
  for (const auto& [from, to] : {std::pair{0, 7}, std::pair{7, 9}}) {
    tasks::Batch batch;
    batch.values = torch::zeros({to - from, 4, 2});
    batch.lengths = torch::full({to - from}, 4, torch::kInt64);
    batch.targets = y.slice(0, from, to);
    batch.example_ids = torch::arange(from, to);
    const Prepared prepared = objective->prepare(batch, 0, Stream(1, "mask"));
    EXPECT_EQ(prepared.count, to - from);
    metrics->add(p.slice(0, from, to), prepared);
  }
  const double mse = (p - y).square().mean().item<double>();
  const double var = (y - y.mean()).square().mean().item<double>();
  const auto values = metrics->values();
  EXPECT_NEAR(values[1].value, mse, 1e-12);
  EXPECT_NEAR(values[3].value, 1 - mse / var, 1e-10);
  EXPECT_NEAR(metrics->scores()[8], (p[8] - y[8]).square().mean().item<double>(), 1e-6);
}

TEST(SupervisedObjective, SequenceToSequenceCountsRealTokensAndWholeAnswers) {
  tasks::TaskFacts facts = token_facts();
  facts.kind = "sequence-to-sequence";
  facts.outputs = 6;
  facts.metrics = {{.name = "exact_match", .unit = "", .higher_is_better = true}};
  const auto objective = make_objective("supervised", {}, facts, {});
  EXPECT_EQ(objective->decode_length(), 6);
  tasks::Batch batch = token_batch({4, 4});
  batch.decoder_tokens = torch::tensor({{7, 8, 3}, {9, 3, 1}});
  batch.decoder_lengths = torch::tensor({3, 2});
  const Prepared prepared = objective->prepare(batch, 0, Stream(1, "mask"));
  EXPECT_EQ(prepared.count, 5);
  at::Tensor logits = torch::zeros({2, 3, 19}, torch::kFloat64);
  EXPECT_NEAR(objective->loss_sum(logits, prepared).item<double>(), 5 * std::log(19.0), 1e-9);
  const auto metrics = objective->metrics();
  metrics->add(logits, prepared);
  metrics->add(torch::tensor({{7, 8, 3, 1}, {9, 3, 4, 1}}), prepared);  // the second answer goes on after its end
  EXPECT_NEAR(metrics->values()[0].value, std::log(19.0), 1e-12);
  EXPECT_EQ(metrics->values()[1].value, 0.5);
  EXPECT_EQ(metrics->scores(), (std::vector<float>{1, 0}));
}

TEST(Objective, UnknownNamesOptionsAndMetricsAreRefused) {
  EXPECT_THROW(make_objective("maskd", {}, token_facts(), {}), Error);
  EXPECT_THROW(make_objective("masked", {{"ration", 0.5}}, token_facts(), {}), Error);
  EXPECT_THROW(make_objective("masked", {{"ratio", 1.5}}, token_facts(), {}), Error);
  EXPECT_THROW(make_objective("supervised", {{"ratio", 0.5}}, token_facts(), {}), Error);
  tasks::TaskFacts facts = token_facts();
  facts.metrics[0].name = "f1";
  EXPECT_THROW(make_objective("supervised", {}, facts, {}), Error);
  facts = token_facts();
  facts.mask_ratio = 0;
  EXPECT_THROW(make_objective("masked", {}, facts, {}), Error);
}

TEST(RegressionSums, NothingCountedIsNotANumber) {
  RegressionSums sums;
  sums.add(torch::zeros({0}), torch::zeros({0}));
  EXPECT_TRUE(std::isnan(sums.mse()));
}

}  // namespace
}  // namespace spt::protocols
