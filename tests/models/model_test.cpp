#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "models/architecture.h"
#include "models/layers/head.h"
#include "models/layers/norm.h"
#include "models/layers/positions.h"
#include "models/s4d.h"

namespace spt::models {
namespace {

using ::testing::HasSubstr;

OptionMap all_options(const std::string& name, const OptionMap& given = {}) {
  return complete(find_architecture(name).options, given, name);
}

std::shared_ptr<Model> small_model(const std::string& name, const OptionMap& given, const HeadSpec& head, bool mask_padding = true) {
  const ModelSpec spec{
      .options = all_options(name, given), .input = {.vocabulary = 20, .max_length = 32}, .head = head, .mask_padding = mask_padding};
  auto model = build_model(find_architecture(name), spec);
  model->reset_parameters(Rng(3).stream("init"));
  model->eval();
  return model;
}

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RealPositions, IsUndefinedWhereThereIsNoPadding) {
  EXPECT_FALSE(real_positions({}, 4).defined());
  EXPECT_FALSE(real_positions(torch::tensor({4, 5}, torch::kInt64), 4).defined());
  const at::Tensor real = real_positions(torch::tensor({1, 4}, torch::kInt64), 4);
  EXPECT_EQ(real.sum(1)[0].item<int64_t>(), 1);
  EXPECT_EQ(real.sum(1)[1].item<int64_t>(), 4);
}

TEST(Pool, CutsEachRowToItsLengthFirst) {
  const at::Tensor x = torch::tensor({1.0, 5.0, 100.0, 2.0, 3.0, 4.0}).view({2, 3, 1}), lengths = torch::tensor({2, 3}, torch::kInt64);
  const auto pooled = [&](const char* kind) {
    const at::Tensor y = pool_positions(x, lengths, kind);
    return std::vector<double>{y[0].item<double>(), y[1].item<double>()};
  };
  EXPECT_EQ(pooled("mean"), (std::vector<double>{3, 3}));
  EXPECT_EQ(pooled("max"), (std::vector<double>{5, 4}));
  EXPECT_EQ(pooled("last"), (std::vector<double>{5, 4}));
  EXPECT_EQ(pooled("first"), (std::vector<double>{1, 2}));
  EXPECT_EQ(pooled("sum"), (std::vector<double>{6, 9}));
  EXPECT_ANY_THROW(pool_positions(x, lengths, "median"));
}

TEST(BatchNorm, CountsRealPositionsAloneUnlessAskedNotTo) {
  const at::Tensor x = torch::tensor({1.0, 3.0, 50.0, 5.0}).view({2, 2, 1}), real = torch::tensor({1, 1, 0, 1}, torch::kBool).view({2, 2});
  BatchNorm fair(1, false), published(1, true);
  for (BatchNorm* norm : {&fair, &published}) norm->reset_parameters(Rng(1).stream("init"), "");
  const at::Tensor y = fair.forward(x, real);
  EXPECT_NEAR(fair.running_mean.item<double>(), 0.1 * 3, 1e-6);
  EXPECT_NEAR(fair.running_var.item<double>(), 0.9 + 0.1 * 4, 1e-6);
  EXPECT_EQ(y[1][0][0].item<double>(), 0);
  EXPECT_NEAR(y.sum().item<double>(), 0, 1e-6);
  published.forward(x, real);
  EXPECT_NEAR(published.running_mean.item<double>(), 0.1 * 59.0 / 4, 1e-5);
  fair.eval();
  EXPECT_TRUE(torch::allclose(fair.forward(x, real), fair.forward(x, {})));
}

TEST(RmsAndScaleNorm, DivideByTheRootOfTheMeanSquare) {
  const at::Tensor x = torch::tensor({3.0, -1.0, 2.0, 0.5, 4.0, 0.0}, torch::kFloat64).view({1, 2, 3});
  for (const char* kind : {"rms", "scale"}) {
    const auto norm = make_norm(kind, 3, false);
    norm->reset_parameters(Rng(1).stream("init"), "");
    norm->to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    norm->weight[0] = 2;  // of the first feature, or of all
    const at::Tensor weight =
        std::string(kind) == "rms" ? torch::tensor({2.0, 1.0, 1.0}, torch::kFloat64) : torch::full({3}, 2.0, torch::kFloat64);
    const at::Tensor want = x / torch::sqrt(x.square().mean(-1, true) + 1e-5) * weight;
    EXPECT_TRUE(torch::allclose(norm->forward(x, {}), want, 1e-12, 1e-12)) << kind;
    EXPECT_EQ(norm->named_parameters().size(), 1u) << kind;
  }
  EXPECT_ANY_THROW(make_norm("group", 3, false));
}

TEST(AttentionInit, IsOneDrawOrFour) {
  for (const bool copies : {false, true}) {
    const OptionMap options = {{"n_layers", int64_t{2}}, {"attention_init", std::string(copies ? "copies" : "separate")}};
    const auto model = small_model("transformer", options, {.kind = "pooled", .outputs = 3});
    const auto p = model->named_parameters();
    for (const char* part : {".weight", ".bias"}) {
      const at::Tensor query = p[std::string("body.layers.0.attention.query") + part];
      for (const char* other : {"key", "value", "output"})
        EXPECT_EQ(torch::equal(query, p[std::string("body.layers.0.attention.") + other + part]), copies) << other << part;
      EXPECT_FALSE(torch::equal(query, p[std::string("body.layers.1.attention.query") + part]));
    }
  }
}

TEST(Sinusoids, AlternateSineAndCosineAndGrow) {
  Sinusoids positions(4);
  const at::Tensor like = torch::zeros({}, torch::kFloat64);
  EXPECT_EQ(positions.table(3, like).sizes(), (std::vector<int64_t>{3, 4}));
  const at::Tensor table = positions.table(8, like);
  EXPECT_NEAR(table[7][0].item<double>(), std::sin(7.0), 1e-12);
  EXPECT_NEAR(table[7][3].item<double>(), std::cos(7.0 / 100), 1e-12);
}

TEST(SequenceHead, AtPositionsEqualsTheWholeHeadThere) {
  const auto model =
      small_model("s4d", {{"n_layers", int64_t{1}}, {"d_model", int64_t{8}}, {"d_state", int64_t{4}}}, {.kind = "sequence", .outputs = 20});
  ModelInput input;
  input.tokens = torch::randint(20, {3, 10}, torch::kInt64);
  const at::Tensor all = model->forward(input);
  EXPECT_EQ(all.sizes(), (std::vector<int64_t>{3, 10, 20}));
  input.positions = torch::tensor({4, 13, 29}, torch::kInt64);
  EXPECT_TRUE(torch::allclose(model->forward(input), all.flatten(0, 1).index_select(0, input.positions), 1e-5, 1e-6));
  input.positions = torch::empty({0}, torch::kInt64);
  EXPECT_EQ(model->forward(input).sizes(), (std::vector<int64_t>{0, 20}));
}

TEST(SequenceModel, LetsPadsBeSeenOnlyWhenToldTo) {
  ModelInput input;
  input.tokens = torch::tensor({4, 5, 6, 1, 1}, torch::kInt64).view({1, 5});
  input.lengths = torch::tensor({3}, torch::kInt64);
  ModelInput changed = input;
  changed.tokens = torch::tensor({4, 5, 6, 9, 9}, torch::kInt64).view({1, 5});
  const OptionMap options = {{"n_layers", int64_t{1}}, {"d_model", int64_t{8}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{8}}};
  for (const bool masked : {true, false}) {
    const auto model = small_model("transformer", options, {.kind = "pooled", .outputs = 3}, masked);
    EXPECT_EQ(torch::equal(model->forward(input), model->forward(changed)), masked);
  }
}

TEST(Parameters, HaveTheRolesThatDecideTheirGroups) {
  const OptionMap options = {{"n_layers", int64_t{1}}, {"d_model", int64_t{8}}, {"d_state", int64_t{4}}};
  const auto model = small_model("s4d", options, {.kind = "pooled", .hidden = "relu", .outputs = 3});
  const std::map<std::string, ParameterRole> want = {{"encoder.weight", ParameterRole::kEmbedding},
                                                     {"body.layers.0.ssm.log_dt", ParameterRole::kStateDt},
                                                     {"body.layers.0.ssm.inv_w_real", ParameterRole::kStateA},
                                                     {"body.layers.0.ssm.w_imag", ParameterRole::kStateA},
                                                     {"body.layers.0.ssm.B", ParameterRole::kStateB},
                                                     {"body.layers.0.ssm.C", ParameterRole::kStateC},
                                                     {"body.layers.0.ssm.D", ParameterRole::kStateD},
                                                     {"body.layers.0.output.weight", ParameterRole::kMatrix},
                                                     {"body.layers.0.output.bias", ParameterRole::kBias},
                                                     {"body.layers.0.norm.weight", ParameterRole::kNorm},
                                                     {"body.layers.0.norm.bias", ParameterRole::kNorm},
                                                     {"body.final_norm.weight", ParameterRole::kNorm},
                                                     {"body.final_norm.bias", ParameterRole::kNorm},
                                                     {"head.hidden.weight", ParameterRole::kMatrix},
                                                     {"head.hidden.bias", ParameterRole::kBias},
                                                     {"head.output.weight", ParameterRole::kMatrix},
                                                     {"head.output.bias", ParameterRole::kBias}};
  std::map<std::string, ParameterRole> roles;
  for (const auto& parameter : model->named_parameters()) roles[parameter.key()] = model->role(parameter.key());
  EXPECT_EQ(roles, want);
}

TEST(Parameters, AreDrawnByTheirNamesAlone) {
  const OptionMap one = {{"n_layers", int64_t{1}}, {"d_model", int64_t{8}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{8}}};
  OptionMap two = one;
  two["n_layers"] = int64_t{2};
  const auto a = small_model("transformer", one, {.kind = "pooled", .outputs = 3}),
             b = small_model("transformer", two, {.kind = "pooled", .outputs = 3});
  const auto theirs = b->named_parameters();
  for (const auto& parameter : a->named_parameters())
    EXPECT_TRUE(torch::equal(parameter.value(), theirs[parameter.key()])) << parameter.key();
  const auto query = theirs["body.layers.0.attention.query.weight"];
  EXPECT_FALSE(torch::equal(query, theirs["body.layers.0.attention.key.weight"]));
  EXPECT_FALSE(torch::equal(query, theirs["body.layers.1.attention.query.weight"]));
}

TEST(Parameters, AreTheSameDrawInFloat64) {
  const HeadSpec head = {.kind = "pooled", .outputs = 3};
  const auto single = small_model("s4d", {}, head), twice = small_model("s4d", {}, head);
  twice->to(torch::kFloat64);
  twice->reset_parameters(Rng(3).stream("init"));
  const auto theirs = twice->named_parameters();
  for (const auto& parameter : single->named_parameters()) {
    EXPECT_EQ(theirs[parameter.key()].scalar_type(), torch::kFloat64);
    EXPECT_TRUE(torch::equal(parameter.value(), theirs[parameter.key()].to(torch::kFloat32))) << parameter.key();
  }
}

TEST(Sizes, OfTheBodyAreWithinTenPercentOfTheirNames) {
  const std::map<std::string, double> want = {{"100K", 1e5}, {"300K", 3e5}, {"1M", 1e6}, {"3M", 3e6}, {"10M", 1e7}};
  for (const Architecture& architecture : architectures()) {
    if (architecture.trivial) continue;
    EXPECT_GE(architecture.sizes.size(), want.size()) << architecture.name;
    size_t found = 0;
    for (const auto& [size, options] : architecture.sizes) {
      if (!want.contains(size)) continue;  // a published model under its own name
      ++found;
      const auto body = architecture.build_body(all_options(architecture.name, options), {.vocabulary = 20}, 0);
      double count = 0;
      for (const auto& parameter : body->parameters()) count += static_cast<double>(parameter.numel());
      EXPECT_NEAR(count / want.at(size), 1, 0.1) << architecture.name << " " << size << ": " << count;
    }
    EXPECT_EQ(found, want.size()) << architecture.name;
  }
}

TEST(S4dInitialState, HasTheClosedForms) {
  const at::Tensor lin = torch::imag(s4d_initial_state("diag-lin", 8)), inv = torch::imag(s4d_initial_state("diag-inv", 8));
  EXPECT_NEAR(lin[3].item<double>(), 3 * M_PI, 1e-12);
  EXPECT_NEAR(inv[0].item<double>(), 8 / M_PI * 7, 1e-12);
  const at::Tensor legs = torch::imag(s4d_initial_state("diag-legs", 8));
  EXPECT_TRUE((legs < 0).all().item<bool>());
  EXPECT_TRUE(torch::equal(legs, std::get<0>(legs.sort())));
}

TEST(Options, ThatDoNotFitTogetherAreRefused) {
  const auto message = [](const std::string& name, const OptionMap& given) {
    return message_of([&] { find_architecture(name).validate(all_options(name, given)); });
  };
  EXPECT_THAT(message("transformer", {{"n_heads", int64_t{3}}}), HasSubstr("n_heads = 3 does not divide d_model = 64"));
  EXPECT_THAT(message("transformer", {{"d_model", int64_t{6}}, {"n_heads", int64_t{2}}, {"position", std::string("rotary")}}),
              HasSubstr("even"));
  EXPECT_THAT(message("s4d", {{"d_state", int64_t{7}}}), HasSubstr("d_state = 7 is odd"));
  EXPECT_THAT(message("s4d", {{"n_ssm", int64_t{3}}}), HasSubstr("does not divide"));
  EXPECT_THAT(message("s4d", {{"dt_min", 0.5}}), HasSubstr("dt_min = 0.5 is above dt_max"));
  EXPECT_THAT(message("s4d", {{"measure", std::string("diag-lim")}}), HasSubstr("did you mean 'diag-lin'"));
  EXPECT_THAT(message("s4", {{"d_state", int64_t{7}}}), HasSubstr("architecture 's4': d_state = 7 is odd"));
  EXPECT_THAT(message("s4", {{"rank", int64_t{2}}}), HasSubstr("rank"));
  EXPECT_THAT(message("ssm-dense", {{"n_ssm", int64_t{3}}}), HasSubstr("architecture 'ssm-dense': n_ssm = 3 does not divide"));
  EXPECT_THAT(message("gru", {{"d_model", int64_t{7}}}), HasSubstr("odd"));
  EXPECT_THAT(message_of([] { find_architecture("transfomer"); }), HasSubstr("did you mean 'transformer'"));
}

TEST(Linear, ReadsTokenFrequenciesOfRealPositions) {
  const auto model = small_model("linear", {}, {.kind = "pooled", .outputs = 2});
  const auto parameters = model->named_parameters();
  for (const auto& parameter : parameters) EXPECT_EQ(parameter.value().abs().sum().item<double>(), 0) << parameter.key();
  const torch::NoGradGuard no_grad;
  parameters["head.weight"][1][5] = 3;
  ModelInput input;
  input.tokens = torch::tensor({5, 5, 7, 1, 5, 5, 5, 5}, torch::kInt64).view({2, 4});
  input.lengths = torch::tensor({3, 4}, torch::kInt64);
  const at::Tensor y = model->forward(input);
  EXPECT_NEAR(y[0][1].item<double>(), 2, 1e-6);
  EXPECT_NEAR(y[1][1].item<double>(), 3, 1e-6);
}

TEST(Linear, CannotBePretrained) {
  EXPECT_THAT(message_of([] { small_model("linear", {}, {.kind = "sequence", .outputs = 2}); }), HasSubstr("cannot be pretrained"));
}

}  // namespace
}  // namespace spt::models
