#include "models/interchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace spt::models {
namespace {

using testing::HasSubstr;

OptionMap weights_options(const std::string& name, const OptionMap& given = {}) {
  const Architecture& architecture = find_architecture(name);
  OptionMap options = complete(architecture.options, given, name);
  if (options.contains("n_layers")) options["n_layers"] = int64_t{2};
  return options;
}

/// A whole network of random values, of token input and a head of this kind.
NamedTensors random_weights(const std::string& name, const OptionMap& options, const HeadSpec& head, bool tokens = true) {
  ModelSpec spec{.options = options, .input = {.max_length = 16}, .head = head};
  (tokens ? spec.input.vocabulary : spec.input.channels) = 5;
  const auto model = build_model(find_architecture(name), spec);
  torch::manual_seed(5);
  NamedTensors weights;
  for (const auto& item : model->named_parameters()) weights[item.key()] = torch::randn_like(item.value());
  for (const auto& item : model->named_buffers()) weights[item.key()] = torch::ones_like(item.value());
  return weights;
}

bool same_tensors(const NamedTensors& a, const NamedTensors& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const auto& t) { return b.contains(t.first) && torch::equal(t.second, b.at(t.first)); });
}

const HeadSpec kClassesHead = {.kind = "pooled", .outputs = 3};

Renamed imported(const std::string& from, const std::string& name, const OptionMap& options, const NamedTensors& published,
                 const std::vector<std::string>& drop = {}) {
  return from_published(find_published_names(from), find_architecture(name), options, published, drop, "file");
}
NamedTensors exported(const std::string& to, const std::string& name, const OptionMap& options, const NamedTensors& ours) {
  return to_published(find_published_names(to), find_architecture(name), options, ours, "file").tensors;
}
std::string import_error(const std::string& from, const std::string& name, const OptionMap& options, const NamedTensors& published) {
  try {
    imported(from, name, options, published);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Interchange, GivesBackWhatItWasGivenForEveryArchitectureThatHasNames) {
  const std::vector<HeadSpec> heads = {
      kClassesHead, {.kind = "pooled", .hidden = "relu", .outputs = 3}, {.kind = "retrieval", .outputs = 2}};
  for (const auto& [name, architecture] : std::vector<std::pair<std::string, std::string>>{{"not-from-scratch", "dlr"},
                                                                                           {"not-from-scratch", "dss"},
                                                                                           {"not-from-scratch", "mega"},
                                                                                           {"not-from-scratch", "s4"},
                                                                                           {"not-from-scratch", "s4d"},
                                                                                           {"not-from-scratch", "transformer"}}) {
    std::vector<OptionMap> variants = {weights_options(architecture)};
    if (architecture != "transformer") {
      variants.push_back(weights_options(architecture, {{"norm", std::string("batch")}}));
      variants.push_back(weights_options(architecture, {{"norm_position", std::string("post")}}));
    }
    if (architecture == "dss") variants.push_back(weights_options(architecture, {{"version", std::string("softmax")}}));
    for (const OptionMap& options : variants)
      for (const HeadSpec& head : heads)
        for (const bool tokens : {true, false}) {
          const NamedTensors ours = random_weights(architecture, options, head, tokens);
          const NamedTensors published = exported(name, architecture, options, ours);
          EXPECT_EQ(published.size(), ours.size()) << architecture;
          for (const auto& [there, tensor] : published) EXPECT_FALSE(ours.contains(there)) << there;
          EXPECT_TRUE(same_tensors(imported(name, architecture, options, published).tensors, ours)) << architecture << " " << head.kind;
        }
  }
}

TEST(Interchange, UsesThePublishedNames) {
  const auto has = [](const std::string& names, const std::string& architecture, const std::map<std::string, std::string>& pairs) {
    const OptionMap options = weights_options(architecture);
    const NamedTensors ours = random_weights(architecture, options, kClassesHead);
    const NamedTensors published = exported(names, architecture, options, ours);
    for (const auto& [here, there] : pairs) {
      ASSERT_TRUE(published.contains(there)) << there;
      EXPECT_TRUE(torch::equal(published.at(there), ours.at(here))) << there;
    }
  };
  has("not-from-scratch", "transformer",
      {{"encoder.weight", "encoder.0.weight"},
       {"head.bias", "decoder.0.output_transform.bias"},
       {"body.layers.1.norm1.weight", "model.layers.2.norm.norm.weight"},
       {"body.layers.1.attention.key.bias", "model.layers.2.layer.linears.1.bias"},
       {"body.layers.0.norm2.bias", "model.layers.1.norm.norm.bias"},
       {"body.layers.1.feed_forward.up.weight", "model.layers.3.layer.ff.0.0.weight"},
       {"body.layers.1.feed_forward.down.weight", "model.layers.3.layer.ff.2.weight"},
       {"body.final_norm.weight", "model.norm.norm.weight"}});
  has("not-from-scratch", "s4",
      {{"body.layers.1.ssm.log_dt", "model.layers.1.layer.kernel.kernel.log_dt"},
       {"body.layers.1.ssm.kernel_length", "model.layers.1.layer.kernel.kernel.L"},
       {"body.layers.0.ssm.D", "model.layers.0.layer.D"},
       {"body.layers.0.output.weight", "model.layers.0.layer.output_linear.0.weight"},
       {"body.layers.1.norm.bias", "model.layers.1.norm.norm.bias"}});
  has("not-from-scratch", "s4d",
      {{"body.layers.1.ssm.inv_w_real", "model.layers.1.layer.kernel.kernel.inv_A_real"},
       {"body.layers.1.ssm.w_imag", "model.layers.1.layer.kernel.kernel.A_imag"}});
  has("not-from-scratch", "dlr",
      {{"body.layers.0.ssm.lambda_sqrt_neg_real", "model.layers.0.layer.kernel.Lambda_log_neg_re"},
       {"body.layers.0.ssm.W", "model.layers.0.layer.kernel.W"}});
  has("not-from-scratch", "mega",
      {{"body.layers.0.query_key.scale", "model.layers.0.layer.gamma"}, {"body.layers.0.ema.alpha", "model.layers.0.layer.ssm.alpha"}});
  has("gpt-neox", "pythia",
      {{"encoder.weight", "gpt_neox.embed_in.weight"}, {"body.layers.1.attention.output.bias", "gpt_neox.layers.1.attention.dense.bias"}});
}

TEST(Interchange, FusesQueryKeyAndValueHeadByHead) {
  const OptionMap options = weights_options("pythia");  // 4 heads of 16
  const NamedTensors ours = random_weights("pythia", options, kClassesHead);
  const NamedTensors published = exported("gpt-neox", "pythia", options, ours);
  const at::Tensor fused = published.at("gpt_neox.layers.0.attention.query_key_value.weight");
  ASSERT_EQ(fused.sizes(), (std::vector<int64_t>{192, 64}));
  for (const auto& [part, name] : {std::pair{0, "query"}, std::pair{1, "key"}, std::pair{2, "value"}})
    EXPECT_TRUE(torch::equal(fused.narrow(0, 48 * 3 + 16 * part, 16),
                             ours.at(fmt::format("body.layers.0.attention.{}.weight", name)).narrow(0, 48, 16)));
}

TEST(Interchange, LeavesOutWhatIsComputedAndTheHeadOfTheLanguageModel) {
  const OptionMap options = weights_options("pythia");
  NamedTensors ours = random_weights("pythia", options, kClassesHead), bare;
  NamedTensors published = exported("gpt-neox", "pythia", options, ours);
  EXPECT_FALSE(published.contains("head.weight"));
  ours.erase("head.weight");
  ours.erase("head.bias");
  for (const auto& [name, tensor] : published) bare[name.substr(9)] = tensor;  // as a GPTNeoXModel by itself has them
  published["embed_out.weight"] = torch::zeros({5, 64});
  published["gpt_neox.layers.0.attention.bias"] = torch::ones({1, 1, 8, 8}).to(torch::kBool);
  published["gpt_neox.layers.1.attention.rotary_emb.inv_freq"] = torch::zeros({2});
  const Renamed renamed = imported("gpt-neox", "pythia", options, published);
  EXPECT_TRUE(same_tensors(renamed.tensors, ours));
  EXPECT_THAT(renamed.dropped, testing::ElementsAre("embed_out.weight", "gpt_neox.layers.0.attention.bias",
                                                    "gpt_neox.layers.1.attention.rotary_emb.inv_freq"));
  EXPECT_TRUE(same_tensors(imported("gpt-neox", "pythia", options, bare).tensors, ours));
  const NamedTensors values = random_weights("pythia", options, kClassesHead, false);  // a linear encoder has no counterpart
  EXPECT_FALSE(exported("gpt-neox", "pythia", options, values).contains("gpt_neox.embed_in.weight"));
}

TEST(Interchange, RefusesFilesThatDoNotFit) {
  const OptionMap options = weights_options("transformer");
  const NamedTensors good = exported("not-from-scratch", "transformer", options, random_weights("transformer", options, kClassesHead));
  NamedTensors other = good;
  other["model.layers.0.layer.rotor"] = torch::zeros({2});
  EXPECT_THAT(import_error("not-from-scratch", "transformer", options, other),
              HasSubstr("'model.layers.0.layer.rotor' is none that not-from-scratch has"));
  EXPECT_EQ(imported("not-from-scratch", "transformer", options, other, {"model.layers.0.layer.rotor"}).dropped.size(), 1u);
  EXPECT_THROW(imported("not-from-scratch", "transformer", options, good, {"model.layers.0.layer.rotor"}), Error);
  other = good;
  other.erase("model.layers.2.layer.linears.3.bias");
  EXPECT_THAT(import_error("not-from-scratch", "transformer", options, other),
              HasSubstr("'body.layers.1.attention.output.bias' of architecture 'transformer' is missing"));
  other = good;
  other["model.layers.1.layer.ff.0.0.weight"] = torch::zeros({256, 63});
  EXPECT_THAT(import_error("not-from-scratch", "transformer", options, other),
              HasSubstr("'body.layers.0.feed_forward.up.weight' is 256x63, architecture 'transformer' with these options has 256x64"));
  other = good;
  other["model.norm.norm.bias"] = torch::zeros({64}, torch::kInt64);
  EXPECT_THAT(import_error("not-from-scratch", "transformer", options, other), HasSubstr("'body.final_norm.bias' is of type Long"));
  other = good;
  other["model.layers.4.norm.norm.bias"] = torch::zeros({64});
  EXPECT_THAT(import_error("not-from-scratch", "transformer", options, other), HasSubstr("has no tensor 'body.layers.2.norm1.bias'"));
  other = good;
  other["model.layers.1.layer.ff.0.0.bias"] = torch::zeros({256, 1});  // of a transposed linear map
  EXPECT_EQ(imported("not-from-scratch", "transformer", options, other).tensors.at("body.layers.0.feed_forward.up.bias").sizes(),
            (std::vector<int64_t>{256}));
  EXPECT_THAT(import_error("gpt-neox", "transformer", options, good),
              HasSubstr("architecture 'transformer' has no names in gpt-neox; those that have: pythia"));
  EXPECT_THAT(import_error("gpt-neoxx", "pythia", options, good), HasSubstr("did you mean 'gpt-neox'?"));
  NamedTensors neox =
      exported("gpt-neox", "pythia", weights_options("pythia"), random_weights("pythia", weights_options("pythia"), kClassesHead));
  neox["gpt_neox.layers.0.attention.query_key_value.bias"] = torch::zeros({190});
  EXPECT_THAT(import_error("gpt-neox", "pythia", weights_options("pythia"), neox),
              HasSubstr("is 190, which is not query, key and value of 4 heads"));
}

}  // namespace
}  // namespace spt::models
