#include "models/layers/local_attention.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "models/architecture.h"

namespace spt::models {
namespace {

/// (L, L) bool: which key a query sees, pair by pair.
at::Tensor visible_pairs(int64_t length, const LocalWindow& w, bool causal) {
  at::Tensor visible = torch::zeros({length, length}, torch::kBool);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < length; ++j) {
      const int64_t blocks = j / w.window - i / w.window;
      visible[i][j] = blocks >= -w.backward && blocks <= w.forward && !(causal && j > i);
    }
  return visible;
}

/// Full attention under the block mask: the slow twin.
at::Tensor masked_full_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const LocalWindow& w, bool causal,
                                 const at::Tensor& real) {
  at::Tensor visible = visible_pairs(q.size(1), w, causal).unsqueeze(0).unsqueeze(0);
  if (real.defined()) visible = visible.logical_and(real.unsqueeze(1).unsqueeze(1));
  const at::Tensor score = torch::einsum("bihd,bjhd->bhij", {q, k}) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor weight = torch::softmax(score.masked_fill(visible.logical_not(), -1e300), -1);
  return torch::einsum("bhij,bjhd->bihd", {weight, v});
}

struct LocalCase {
  int64_t length;
  LocalWindow window;
  bool causal = false;
};

std::string text_of(const LocalCase& c) {
  return fmt::format("L={} window={} -{} +{}{}", c.length, c.window.window, c.window.backward, c.window.forward, c.causal ? " causal" : "");
}

const std::vector<LocalCase> kLocalCases = {{24, {6, 1, 1}},       {24, {6, 0, 0}},       {24, {6, 2, 1}},      {24, {6, 0, 3}},
                                            {24, {6, 9, 9}},       {23, {6, 1, 1}},       {25, {6, 1, 2}},      {5, {6, 1, 1}},
                                            {6, {6, 1, 1}},        {7, {1, 2, 2}},        {40, {4, 1, 1}},      {24, {6, 1, 0}, true},
                                            {24, {6, 0, 0}, true}, {25, {6, 2, 0}, true}, {5, {6, 1, 0}, true}, {40, {4, 3, 0}, true}};

/// Outputs at real positions and the gradients of their weighted sum.
std::vector<at::Tensor> values_and_gradients(const LocalCase& c, const at::Tensor& real, bool twin) {
  torch::manual_seed(8);
  std::vector<at::Tensor> qkv;
  for (int i = 0; i < 3; ++i) qkv.push_back(torch::randn({3, c.length, 2, 4}, torch::kFloat64).requires_grad_());
  const at::Tensor y = twin ? masked_full_attention(qkv[0], qkv[1], qkv[2], c.window, c.causal, real)
                            : local_attention(qkv[0], qkv[1], qkv[2], c.window, c.causal, real);
  at::Tensor weight = torch::randn(y.sizes(), torch::kFloat64);
  if (real.defined()) weight = weight * real.unsqueeze(-1).unsqueeze(-1);
  (y * weight).sum().backward();
  return {(y * weight).detach(), qkv[0].grad(), qkv[1].grad(), qkv[2].grad()};
}

TEST(LocalAttention, EqualsFullAttentionUnderABlockMask) {
  for (const LocalCase& c : kLocalCases)
    for (const bool padded : {false, true}) {
      const at::Tensor real = padded ? real_positions(torch::tensor({c.length, (c.length + 1) / 2, int64_t{1}}), c.length) : at::Tensor();
      const auto got = values_and_gradients(c, real, false), want = values_and_gradients(c, real, true);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-12) << text_of(c) << (padded ? " padded " : " ") << i;
    }
}

TEST(LocalAttention, IsNotThatOfAnotherWindow) {  // the comparison above can fail
  const LocalCase narrow = {24, {6, 1, 1}}, wide = {24, {6, 2, 1}};
  EXPECT_GT((values_and_gradients(narrow, {}, false)[0] - values_and_gradients(wide, {}, true)[0]).abs().max().item<double>(), 1e-3);
}

TEST(LocalAttention, StaysFiniteWhereABlockSeesNothingButPads) {
  const at::Tensor x = torch::randn({1, 30, 1, 4}), real = real_positions(torch::tensor({int64_t{2}}), 30);
  for (const bool causal : {false, true})
    EXPECT_TRUE(local_attention(x, x, x, {4, 1, causal ? 0 : 1}, causal, real).isfinite().all().item<bool>());
}

TEST(LocalAttention, CountsThePairsThatItMultiplies) {
  for (const LocalCase& c : kLocalCases) {
    double want = visible_pairs(c.length, c.window, false).sum().item<double>();
    if (c.causal) want -= visible_pairs(c.length, {c.window.window, 0, 0}, false).sum().item<double>() / 2;
    EXPECT_EQ(local_attention_pairs(c.length, c.window, c.causal), want) << text_of(c);
  }
}

TEST(LocalAttention, RefusesToLookForwardWhereCausal) {
  const at::Tensor x = torch::randn({1, 8, 1, 4});
  EXPECT_ANY_THROW(local_attention(x, x, x, {4, 1, 1}, true, {}));
}

int64_t g_largest = 0;  // the callback is a plain function

std::unique_ptr<at::ObserverContext> nothing_at_start(const at::RecordFunction&) { return nullptr; }

void note_outputs(const at::RecordFunction& record, at::ObserverContext*) {
  for (const c10::IValue& output : record.outputs())
    if (output.isTensor() && output.toTensor().defined()) g_largest = std::max(g_largest, output.toTensor().numel());
}

/// Elements of the largest tensor that any operator of a forward pass returns.
int64_t largest_tensor(int64_t length, bool causal, bool padded) {
  const at::Tensor x = torch::randn({2, length, 2, 8});
  const at::Tensor real = padded ? real_positions(torch::tensor({length, length / 2}), length) : at::Tensor();
  g_largest = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(nothing_at_start, note_outputs).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
  local_attention(x, x, x, {32, 1, causal ? 0 : 1}, causal, real);
  at::removeCallback(handle);
  return g_largest;
}

TEST(LocalAttention, MakesNoTensorThatGrowsFasterThanTheLength) {
  for (const bool causal : {false, true})
    for (const bool padded : {false, true}) {
      const int64_t at_512 = largest_tensor(512, causal, padded);
      EXPECT_GT(at_512, 0);
      EXPECT_LE(largest_tensor(2048, causal, padded), at_512 * 9 / 2) << causal << padded;  // 4, and a little where both ends see less
    }
}

TEST(LocalTransformer, PredictsTheSameWhateverThePadding) {
  const Architecture& transformer = find_architecture("transformer");
  for (const bool causal : {false, true}) {
    const OptionMap given = {{"n_layers", int64_t{3}}, {"d_model", int64_t{16}}, {"attention", std::string("local")},
                             {"window", int64_t{4}},   {"causal", causal},       {"look_forward", int64_t{causal ? 0 : 1}}};
    const ModelSpec spec{.options = complete(transformer.options, given, "test"),
                         .input = {.vocabulary = 20, .max_length = 64},
                         .head = {.kind = "pooled", .outputs = 3}};
    const auto model = build_model(transformer, spec);
    model->reset_parameters(Rng(3).stream("init"));
    model->to(torch::kFloat64);
    ModelInput alone, padded;
    alone.tokens = torch::randint(2, 20, {1, 11}, torch::kInt64);
    alone.lengths = padded.lengths = torch::tensor({int64_t{11}});
    for (const int64_t pads : {1, 5, 30}) {
      padded.tokens = torch::constant_pad_nd(alone.tokens, {0, pads}, 1);
      EXPECT_LT((model->forward(alone) - model->forward(padded)).abs().max().item<double>(), 1e-12) << causal << " " << pads;
    }
  }
}

TEST(LocalTransformer, RefusesToLookForwardWhereCausal) {
  const Architecture& transformer = find_architecture("transformer");
  const OptionMap options = complete(transformer.options, {{"attention", std::string("local")}, {"causal", true}}, "test");
  try {
    transformer.validate(options);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("needs look_forward = 0, not 1"));
  }
}

}  // namespace
}  // namespace spt::models
