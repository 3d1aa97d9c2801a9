#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "models/architecture.h"

namespace spt::models {
namespace {

double g_counted = 0;  // the callback is a plain function

double product(at::IntArrayRef sizes) {
  double n = 1;
  for (const int64_t size : sizes) n *= static_cast<double>(size);
  return n;
}

/// What an operator costs by definitions.md 3, from the sizes it was called with.
double operator_flops(const at::RecordFunction& record) {
  const std::string name = record.name();
  const auto inputs = record.inputs();
  const auto tensor = [&](size_t i) { return inputs[i].toTensor(); };
  if (name == "aten::mm" || name == "aten::bmm") return 2 * product(tensor(0).sizes()) * static_cast<double>(tensor(1).size(-1));
  if (name == "aten::addmm" || name == "aten::baddbmm") return 2 * product(tensor(1).sizes()) * static_cast<double>(tensor(2).size(-1));
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu")
    return 4 * product(tensor(0).sizes()) * static_cast<double>(tensor(1).size(2)) * (inputs[4].toBool() ? 0.5 : 1.0);
  if (name == "aten::_linalg_solve_ex") {  // one factorisation, then two triangular solves a column
    const double N = static_cast<double>(tensor(0).size(-1));
    return product(tensor(0).sizes()) * (N * 2 / 3 + 2 * static_cast<double>(tensor(1).size(-1)));
  }
  if (name == "spt::fused_attention")  // q and k are (B, L, H, d)
    return 4 * product(tensor(0).sizes()) * static_cast<double>(tensor(1).size(1)) * (inputs[3].toBool() ? 0.5 : 1.0);
  if (name == "aten::_fft_r2c" || name == "aten::_fft_c2r") {
    const double n = static_cast<double>(name == "aten::_fft_r2c" ? tensor(0).size(-1) : inputs[3].toInt());
    return product(tensor(0).sizes()) / static_cast<double>(tensor(0).size(-1)) * 2.5 * n * std::log2(n);
  }
  if (name == "spt::causal_convolution") return 2 * product(tensor(0).sizes()) * static_cast<double>(tensor(1).size(0));
  if (name == "aten::mkldnn_rnn_layer")
    return 2 * static_cast<double>(tensor(0).size(0) * tensor(0).size(1) * (tensor(1).numel() + tensor(2).numel()));
  if (name == "spt::diagonal_scan") return 4 * product(tensor(1).sizes());
  if (name == "spt::selective_scan") return 4 * product(tensor(0).sizes()) * static_cast<double>(tensor(1).size(1));
  return 0;
}

std::unique_ptr<at::ObserverContext> count_operator(const at::RecordFunction& record) {
  g_counted += operator_flops(record);
  return nullptr;
}

double counted_flops(Model& model, const ModelInput& input) {
  const torch::NoGradGuard no_grad;
  model.eval();
  model.forward(input);  // tables are made outside the count
  g_counted = 0;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(count_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  model.forward(input);
  at::removeCallback(handle);
  return g_counted;
}

void expect_counted(const std::string& name, const OptionMap& given, const HeadSpec& head, bool tokens) {
  const Architecture& architecture = find_architecture(name);
  constexpr int64_t kBatch = 6, kLength = 96;
  ModelSpec spec{.options = complete(architecture.options, given, name), .input = {}, .head = head};
  spec.input.max_length = kLength;
  (tokens ? spec.input.vocabulary : spec.input.channels) = tokens ? 17 : 3;
  const auto model = build_model(architecture, spec);
  model->reset_parameters(Rng(1).stream("init"));
  ModelInput input;
  if (tokens) input.tokens = torch::randint(17, {kBatch, kLength}, torch::kInt64);
  else input.values = torch::randn({kBatch, kLength, 3});
  const Flops flops = model_flops(architecture, spec, kLength);
  const double rows = head.kind == "retrieval" ? kBatch / 2 : kBatch;
  const double analytic = flops.fixed + flops.per_example * rows, counted = counted_flops(*model, input);
  EXPECT_NEAR(analytic / counted, 1, 0.02) << name << ": analytic " << analytic << ", counted " << counted;
}

const HeadSpec kClasses = {.kind = "pooled", .outputs = 10};

TEST(Flops, OfTheTransformerAreThoseCounted) {
  const OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{64}}};
  OptionMap causal = size;
  causal["causal"] = true;
  expect_counted("transformer", size, kClasses, true);
  expect_counted("transformer", causal, kClasses, false);
  expect_counted("transformer", size, {.kind = "sequence", .outputs = 17}, true);
  expect_counted("transformer", size, {.kind = "retrieval", .outputs = 2}, true);
  expect_counted("transformer", size, {.kind = "pooled", .hidden = "relu", .outputs = 10}, false);
}

TEST(Flops, OfLocalAttentionAreThoseCounted) {
  OptionMap local = {{"n_layers", int64_t{2}},
                     {"d_model", int64_t{32}},
                     {"n_heads", int64_t{2}},
                     {"d_ff", int64_t{64}},
                     {"window", int64_t{16}},
                     {"position", std::string("rotary")},
                     {"attention", std::string("local")}};
  expect_counted("transformer", local, kClasses, true);
  local["window"] = int64_t{20};  // no divisor of the length
  local["look_backward"] = int64_t{2};
  expect_counted("transformer", local, kClasses, false);
  local["look_backward"] = int64_t{0};
  local["look_forward"] = int64_t{0};
  local["causal"] = true;
  expect_counted("transformer", local, kClasses, true);
}

TEST(Flops, OfS4dAreThoseCounted) {
  const OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_state", int64_t{16}}};
  OptionMap causal = size, cut = size;
  causal["bidirectional"] = false;
  cut["l_max"] = int64_t{40};
  expect_counted("s4d", size, kClasses, true);
  expect_counted("s4d", causal, kClasses, false);
  expect_counted("s4d", cut, {.kind = "sequence", .outputs = 3}, false);
}

TEST(Flops, OfS4AreThoseCounted) {
  const OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_state", int64_t{16}}};
  OptionMap causal = size, cut = size;
  causal["bidirectional"] = false;
  cut["l_max"] = int64_t{41};
  expect_counted("s4", size, kClasses, true);
  expect_counted("s4", causal, kClasses, false);
  expect_counted("s4", cut, {.kind = "sequence", .outputs = 3}, false);
}

TEST(Flops, OfTheDenseStateSpaceAreThoseCounted) {
  const OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_state", int64_t{16}}};
  OptionMap causal = size, cut = size;
  causal["bidirectional"] = false;
  cut["l_max"] = int64_t{41};
  expect_counted("ssm-dense", size, kClasses, true);
  expect_counted("ssm-dense", causal, kClasses, false);
  expect_counted("ssm-dense", cut, kClasses, false);
}

TEST(Flops, OfMegaAreThoseCounted) {
  OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_attention", int64_t{16}}, {"d_value", int64_t{48}},
                    {"d_state", int64_t{8}},  {"d_ff", int64_t{64}},    {"chunk", int64_t{16}}};
  expect_counted("mega", size, kClasses, true);
  size["chunk"] = int64_t{40};  // no divisor of the length
  size["attention"] = std::string("laplace");
  expect_counted("mega", size, {.kind = "sequence", .outputs = 3}, false);
  size["chunk"] = int64_t{0};
  size["bidirectional"] = false;
  expect_counted("mega", size, kClasses, true);
}

TEST(Flops, OfDlrAndDssAreThoseCounted) {
  const OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_state", int64_t{24}}};
  for (const char* name : {"dlr", "dss"}) {
    OptionMap causal = size, cut = size;
    causal["bidirectional"] = false;
    cut["l_max"] = int64_t{40};
    expect_counted(name, size, kClasses, true);
    expect_counted(name, causal, kClasses, false);
    expect_counted(name, cut, {.kind = "sequence", .outputs = 3}, false);
  }
  OptionMap softmax = size;
  softmax["version"] = std::string("softmax");
  expect_counted("dss", softmax, kClasses, true);
}

TEST(Flops, OfTheGruAreThoseCounted) {
  expect_counted("gru", {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}}, kClasses, true);
  expect_counted("gru", {{"n_layers", int64_t{1}}, {"d_model", int64_t{32}}, {"bidirectional", false}}, kClasses, false);
}

TEST(Flops, OfTheLstmAreThoseCounted) {
  expect_counted("lstm", {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}}, kClasses, true);
  expect_counted("lstm", {{"n_layers", int64_t{1}}, {"d_model", int64_t{32}}, {"bidirectional", false}}, kClasses, false);
}

TEST(Flops, OfTheLongConvolutionAreThoseCounted) {
  expect_counted("long-conv", {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}}, kClasses, true);
  expect_counted("long-conv", {{"n_layers", int64_t{1}}, {"bidirectional", false}, {"l_max", int64_t{40}}}, kClasses, false);
}

TEST(Flops, OfLruAndS5AreThoseCounted) {
  for (const char* name : {"lru", "s5"}) {
    expect_counted(name, {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"d_state", int64_t{16}}}, kClasses, true);
    expect_counted(name, {{"n_layers", int64_t{1}}, {"d_model", int64_t{32}}, {"bidirectional", false}}, kClasses, false);
  }
  expect_counted("s5", {{"conj_sym", false}, {"activation", std::string("glu")}}, kClasses, true);
}

TEST(Flops, OfMambaAreThoseCounted) {
  expect_counted("mamba", {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}}, kClasses, true);
  expect_counted("mamba", {{"n_layers", int64_t{1}}, {"d_state", int64_t{5}}, {"expand", int64_t{1}}}, kClasses, false);
}

TEST(Flops, OfPythiaAreThoseCounted) {
  OptionMap size = {{"n_layers", int64_t{2}}, {"d_model", int64_t{32}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{64}}};
  expect_counted("pythia", size, kClasses, true);
  size["parallel_residual"] = false;
  size["rotary_fraction"] = 1.0;
  expect_counted("pythia", size, {.kind = "sequence", .outputs = 17}, false);
}

TEST(Flops, OfTheLinearModelAreThoseCounted) {
  expect_counted("linear", {}, kClasses, true);
  expect_counted("linear", {}, kClasses, false);
}

}  // namespace
}  // namespace spt::models
