#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "models/architecture.h"

// What every registered architecture must do, in every variant that its own options offer.
namespace spt::models {
namespace {

constexpr int64_t kVocabulary = 20;

struct Variant {
  std::string name;
  const Architecture* architecture;
  OptionMap options;
};

bool is_valid(const Architecture& architecture, const OptionMap& options) {
  try {
    if (architecture.validate) architecture.validate(options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The smallest preset of each architecture in two layers (what a first one leaves at pads, a second one reads), then with each value of
/// each option that has few: one at a time.
std::vector<Variant> variants_of(const Architecture& architecture) {
  OptionMap base =
      complete(architecture.options, architecture.sizes.empty() ? OptionMap{} : architecture.sizes.front().second, architecture.name);
  if (base.contains("n_layers")) base["n_layers"] = int64_t{2};
  std::vector<Variant> variants = {{architecture.name, &architecture, base}};
  const auto add = [&](const std::string& option, const OptionValue& value) {
    OptionMap changed = base;
    changed[option] = value;
    if (value != base.at(option) && is_valid(architecture, changed))
      variants.push_back({architecture.name + " " + option + "=" + to_text(value), &architecture, changed});
  };
  for (const OptionSchema& option : architecture.options) {
    for (const std::string& choice : option.info.choices) add(option.name, choice);
    if (std::holds_alternative<bool>(option.default_value))
      for (const bool value : {false, true}) add(option.name, value);
  }
  return variants;
}

std::vector<Variant> all_variants() {
  std::vector<Variant> all;
  for (const Architecture& architecture : architectures())
    for (Variant& variant : variants_of(architecture)) all.push_back(std::move(variant));
  return all;
}

std::shared_ptr<Model> build_variant(const Variant& variant, const HeadSpec& head, bool tokens = true, uint64_t seed = 1) {
  ModelSpec spec{.options = variant.options, .input = {.max_length = 48}, .head = head};
  (tokens ? spec.input.vocabulary : spec.input.channels) = tokens ? kVocabulary : 3;
  auto model = build_model(*variant.architecture, spec);
  model->reset_parameters(Rng(seed).stream("init"));
  return model;
}

/// Rows of 3..24 real tokens, right-padded to `length`.
ModelInput ragged_rows(int64_t rows, int64_t length) {
  torch::manual_seed(11);
  ModelInput input;
  input.lengths = torch::randint(3, 25, {rows}, torch::kInt64);
  input.lengths[0] = 24;
  input.tokens = torch::randint(2, kVocabulary, {rows, 24}, torch::kInt64);
  input.tokens = torch::constant_pad_nd(input.tokens, {0, length - 24}, 1);
  input.tokens.masked_fill_(torch::arange(length).unsqueeze(0) >= input.lengths.unsqueeze(1), 1);
  return input;
}

ModelInput rows_of(const ModelInput& all, int64_t first, int64_t count) {
  ModelInput some;
  some.lengths = all.lengths.narrow(0, first, count);
  some.tokens = all.tokens.narrow(0, first, count).narrow(1, 0, some.lengths.max().item<int64_t>());
  return some;
}

const HeadSpec kPooled = {.kind = "pooled", .outputs = 5};
const HeadSpec kSequence = {.kind = "sequence", .outputs = 7};

TEST(Architectures, AreThere) {
  std::set<std::string> names;
  for (const Architecture& architecture : architectures()) {
    names.insert(architecture.name);
    EXPECT_FALSE(architecture.summary.empty()) << architecture.name;
    EXPECT_GE(architecture.version, 1) << architecture.name;
    for (const auto& [option, value] : architecture.causal)
      EXPECT_NO_THROW(complete(architecture.options, {{option, value}}, architecture.name));
  }
  for (const char* name : {"transformer", "s4d", "gru", "linear", "lstm", "long-conv", "lru", "mamba", "pythia", "s5"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Architectures, GiveFiniteOutputsOfTheStatedShape) {
  for (const Variant& variant : all_variants()) {
    ModelInput input = ragged_rows(4, 24);
    const at::Tensor y = build_variant(variant, kPooled)->forward(input);
    EXPECT_EQ(y.sizes(), (std::vector<int64_t>{4, 5})) << variant.name;
    EXPECT_TRUE(y.isfinite().all().item<bool>()) << variant.name;
    EXPECT_EQ(build_variant(variant, {.kind = "retrieval", .outputs = 2})->forward(input).sizes(), (std::vector<int64_t>{2, 2}))
        << variant.name;
    ModelInput values;
    values.values = torch::randn({2, 10, 3});
    EXPECT_EQ(build_variant(variant, kPooled, false)->forward(values).sizes(), (std::vector<int64_t>{2, 5})) << variant.name;
    if (variant.architecture->trivial) continue;
    EXPECT_EQ(build_variant(variant, kSequence)->forward(input).sizes(), (std::vector<int64_t>{4, 24, 7})) << variant.name;
  }
}

TEST(Architectures, DrawTheSameWeightsFromTheSameSeedAndOthersFromAnother) {
  for (const Variant& variant : all_variants()) {
    const auto first = build_variant(variant, kPooled)->named_parameters(), again = build_variant(variant, kPooled)->named_parameters();
    const auto other = build_variant(variant, kPooled, true, 2)->named_parameters();
    bool differs = variant.architecture->trivial;  // a convex problem may start at a fixed point
    for (const auto& parameter : first) {
      EXPECT_TRUE(torch::equal(parameter.value(), again[parameter.key()])) << variant.name << " " << parameter.key();
      differs = differs || !torch::equal(parameter.value(), other[parameter.key()]);
    }
    EXPECT_TRUE(differs) << variant.name;
  }
}

TEST(Architectures, GiveEveryParameterAGradientAndARole) {
  for (const Variant& variant : all_variants()) {
    const auto model = build_variant(variant, kPooled);
    const at::Tensor y = model->forward(ragged_rows(8, 26));
    torch::manual_seed(2);
    (y * torch::randn_like(y)).sum().backward();
    for (const auto& parameter : model->named_parameters()) {
      const at::Tensor& gradient = parameter.value().grad();
      ASSERT_TRUE(gradient.defined()) << variant.name << " " << parameter.key();
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << variant.name << " " << parameter.key();
      EXPECT_GT(gradient.abs().max().item<double>(), 0) << variant.name << " " << parameter.key();
      EXPECT_NO_THROW(model->role(parameter.key())) << variant.name << " " << parameter.key();
    }
  }
}

/// Largest difference between the rows of one padded batch and the same rows in batches of `size`, cut to their own lengths; of single rows
/// the first ten are enough.
double difference_in_batches(Model& model, const ModelInput& all, const at::Tensor& together, int64_t size) {
  const int64_t rows = size == 1 ? 10 : all.tokens.size(0);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < rows; first += size) parts.push_back(model.forward(rows_of(all, first, std::min(size, rows - first))));
  return (torch::cat(parts) - together.narrow(0, 0, rows)).abs().max().item<double>() / std::max(1.0, together.abs().max().item<double>());
}

TEST(Architectures, PredictTheSameWhateverTheBatchAndThePadding) {
  const torch::NoGradGuard no_grad;
  for (const Variant& variant : all_variants())
    for (const char* pool : {"mean", "last", "max"}) {
      if (pool != std::string("mean") && variant.name != variant.architecture->name) continue;  // pools are the head's, not the variant's
      for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
        const auto model = build_variant(variant, {.kind = "pooled", .pool = pool, .outputs = 5});
        model->to(dtype);
        model->eval();
        const ModelInput all = ragged_rows(64, 33);
        const at::Tensor together = model->forward(all);
        for (const int64_t size : {1, 7, 64})
          EXPECT_LT(difference_in_batches(*model, all, together, size), dtype == torch::kFloat32 ? 1e-5 : 1e-10)
              << variant.name << " " << pool << " " << size;
      }
    }
}

TEST(Architectures, TrainTheSameWhateverThePadding) {
  for (const Variant& variant : all_variants()) {
    at::Tensor loss[2];
    for (const int64_t extra : {0, 9}) {
      const auto model = build_variant(variant, kPooled);
      model->to(torch::kFloat64);
      loss[extra > 0] = model->forward(ragged_rows(8, 24 + extra)).square().sum();
    }
    // A norm that is asked to count pads sees them: that is the published behaviour, under its own name.
    const bool counts_pads = variant.options.contains("batch_statistics") &&
                             std::get<std::string>(variant.options.at("batch_statistics")) == "all" &&
                             std::get<std::string>(variant.options.at("norm")) == "batch";
    if (counts_pads) continue;
    EXPECT_NEAR(loss[0].item<double>(), loss[1].item<double>(), 1e-9 * (1 + loss[1].item<double>())) << variant.name;
  }
}

/// Whether a change of the last token reaches earlier positions.
bool looks_ahead(const Variant& variant) {
  const torch::NoGradGuard no_grad;
  const auto model = build_variant(variant, kSequence);
  model->to(torch::kFloat64);
  model->eval();
  ModelInput input;
  input.tokens = torch::full({1, 16}, 3, torch::kInt64);
  const at::Tensor before = model->forward(input).narrow(1, 0, 15);
  input.tokens[0][15] = 4;
  return (model->forward(input).narrow(1, 0, 15) - before).abs().max().item<double>() > 1e-9;
}

/// With all the options that make an architecture causal nothing looks ahead, with none of them something does. Between the two it depends
/// on what the options mean together.
TEST(Architectures, AreCausalExactlyWhenTheirOptionsSaySo) {
  for (const Variant& variant : all_variants()) {
    if (variant.architecture->trivial || variant.architecture->causal.empty()) continue;
    Variant causal = variant;
    size_t set = 0;
    for (const auto& [option, value] : variant.architecture->causal) {
      set += variant.options.at(option) == value;
      causal.options[option] = value;
    }
    if (set == 0) {
      EXPECT_TRUE(looks_ahead(variant)) << variant.name;
    }
    EXPECT_FALSE(looks_ahead(causal)) << variant.name;
  }
}

TEST(Architectures, DropOnlyInTraining) {
  for (const Variant& variant : all_variants()) {
    if (variant.architecture->trivial) continue;
    ModelSpec spec{.options = variant.options, .input = {.vocabulary = kVocabulary, .max_length = 48}, .head = kPooled, .dropout = 0.3};
    const auto model = build_model(*variant.architecture, spec);
    model->reset_parameters(Rng(1).stream("init"));
    const ModelInput input = ragged_rows(4, 24);
    const at::Tensor first = model->forward(input), second = model->forward(input);
    EXPECT_FALSE(torch::equal(first, second)) << variant.name;
    model->eval();
    EXPECT_TRUE(torch::equal(model->forward(input), model->forward(input))) << variant.name;
  }
}

TEST(Architectures, AreTheSameAfterTheirStateIsCopied) {
  const torch::NoGradGuard no_grad;
  for (const Variant& variant : all_variants()) {
    const auto from = build_variant(variant, kPooled), to = build_variant(variant, kPooled, true, 2);
    from->forward(ragged_rows(8, 24));  // moves running statistics, where there are some
    auto parameters = to->named_parameters(), buffers = to->named_buffers();
    for (const auto& parameter : from->named_parameters()) parameters[parameter.key()].copy_(parameter.value());
    for (const auto& buffer : from->named_buffers()) buffers[buffer.key()].copy_(buffer.value());
    from->eval();
    to->eval();
    EXPECT_TRUE(torch::equal(from->forward(ragged_rows(8, 24)), to->forward(ragged_rows(8, 24)))) << variant.name;
  }
}

}  // namespace
}  // namespace spt::models
