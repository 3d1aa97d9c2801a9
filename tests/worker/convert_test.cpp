#include "harness/worker/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/worker/checkpoint.h"
#include "harness/worker/transfer.h"

namespace spt::worker {
namespace {

using testing::HasSubstr;

class Convert : public testing::Test {
 protected:
  Convert() : folder_(std::filesystem::path(testing::TempDir()) / fmt::format("spt-convert-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Convert() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  ConvertQuery query(bool to_ours, const std::string& input, const std::string& output) const {
    return {to_ours,     "gpt-neox",   "pythia", {{"d_model", int64_t{16}}, {"n_heads", int64_t{2}}, {"d_ff", int64_t{24}}},
            file(input), file(output), {}};
  }
  std::string refusal(const ConvertQuery& asked) const {
    try {
      convert(asked);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  /// A network of ours in float32, by one name a file; its embedding has 7 rows.
  std::shared_ptr<models::Model> drawn_model(uint64_t seed) const {
    const auto& architecture = models::find_architecture("pythia");
    models::ModelSpec spec{.options = complete(architecture.options, query(true, "", "").options, "test"),
                           .input = {.vocabulary = 7, .max_length = 9},
                           .head = {.outputs = 3}};
    const auto model = models::build_model(architecture, spec);
    model->reset_parameters(Rng(seed).stream("init"));
    return model;
  }
  void write_model(const models::Model& model, const std::string& name) const {
    SafetensorsFile content;
    for (const auto& [tensor, value] : model_tensors(model)) content.tensors.emplace(tensor, to_raw(value));
    write_safetensors(file(name), content);
  }

  const std::filesystem::path folder_;
};

TEST_F(Convert, ExportsAndImportsTheSameBytes) {
  write_model(*drawn_model(1), "ours");
  const ConvertAnswer out = convert(query(false, "ours", "theirs"));
  EXPECT_THAT(out.dropped, testing::ElementsAre("head.bias", "head.weight"));
  const ConvertAnswer back = convert(query(true, "theirs", "again"));
  EXPECT_EQ(back.sha256, sha256_file(file("again")));
  EXPECT_TRUE(back.dropped.empty());
  SafetensorsFile ours = read_safetensors(file("ours")), again = read_safetensors(file("again"));
  ours.tensors.erase("head.bias");
  ours.tensors.erase("head.weight");
  EXPECT_EQ(ours.tensors, again.tensors);
  EXPECT_EQ(again.metadata.at(kWeightsArchitecture), "pythia");
  EXPECT_EQ(again.metadata.at("input_sha256"), sha256_file(file("theirs")));
  convert(query(false, "again", "theirs2"));
  EXPECT_EQ(read_safetensors(file("theirs2")).tensors, read_safetensors(file("theirs")).tensors);
}

TEST_F(Convert, HoldsHalfPrecisionAsFloat32) {
  write_model(*drawn_model(1), "ours");
  convert(query(false, "ours", "theirs"));
  SafetensorsFile half = read_safetensors(file("theirs"));
  for (auto& [name, raw] : half.tensors) raw = to_raw(from_raw(raw).to(torch::kHalf));
  write_safetensors(file("half"), half);
  convert(query(true, "half", "again"));
  const SafetensorsFile ours = read_safetensors(file("ours"));
  for (const auto& [name, raw] : read_safetensors(file("again")).tensors) {
    EXPECT_EQ(raw.dtype, "F32") << name;
    EXPECT_TRUE(torch::equal(from_raw(raw), from_raw(ours.tensors.at(name)).to(torch::kHalf).to(torch::kFloat))) << name;
  }
}

TEST_F(Convert, RefusesWhatDoesNotFit) {
  write_model(*drawn_model(1), "ours");
  convert(query(false, "ours", "theirs"));
  const std::string bytes = read_file(file("theirs"));
  write_file_atomically(file("cut"), std::string_view(bytes).substr(0, bytes.size() - 5));
  EXPECT_THAT(refusal(query(true, "cut", "out")), HasSubstr(file("cut")));
  write_file_atomically(file("empty"), "");
  EXPECT_THAT(refusal(query(true, "empty", "out")), HasSubstr("truncated"));
  EXPECT_THAT(refusal(query(true, "absent", "out")), HasSubstr("absent"));
  EXPECT_THAT(refusal(query(true, "ours", "out")), HasSubstr("is none that gpt-neox has"));
  EXPECT_THAT(refusal(query(false, "theirs", "out")), HasSubstr("is missing"));
  EXPECT_THAT(refusal(query(true, "theirs", "theirs")), HasSubstr("the output would replace the input"));
  ConvertQuery other = query(true, "theirs", "out");
  other.names = "gpt-neo";
  EXPECT_THAT(refusal(other), HasSubstr("did you mean 'gpt-neox'?"));
  other = query(true, "theirs", "out");
  other.options["d_ff"] = int64_t{32};
  EXPECT_THAT(refusal(other),
              HasSubstr("'body.layers.0.feed_forward.down.weight' is 16x24, architecture 'pythia' with these options has 16x32"));
  other.options["n_heads"] = int64_t{3};
  EXPECT_THAT(refusal(other), HasSubstr("does not divide"));
  EXPECT_FALSE(std::filesystem::exists(file("out")));
}

TEST_F(Convert, GivesWeightsThatAModelStartsFrom) {
  const auto source = drawn_model(1), model = drawn_model(2), fresh = drawn_model(2);
  write_model(*source, "ours");
  convert(query(false, "ours", "theirs"));
  convert(query(true, "theirs", "again"));
  SafetensorsFile weights = read_safetensors(file("again"));
  const auto& architecture = models::find_architecture("pythia");
  ComponentSpec job{"pythia", 1, complete(architecture.options, query(true, "", "").options, "test")};
  EXPECT_NO_THROW(check_made_for(weights, job, architecture, "again"));
  results::TransferEvent audit = transfer_given(weights, *model, "again");
  EXPECT_THAT(audit.redrawn, testing::UnorderedElementsAre("head.weight", "head.bias"));
  EXPECT_TRUE(audit.dropped.empty() && audit.sliced.empty());
  for (const auto& item : model->named_parameters())
    EXPECT_TRUE(torch::equal(item.value(), (item.key().starts_with("head.") ? fresh : source)->named_parameters()[item.key()]))
        << item.key();

  weights.tensors["encoder.weight"] = to_raw(torch::zeros({9, 16}));  // another vocabulary
  audit = transfer_given(weights, *model, "again");
  EXPECT_THAT(audit.redrawn, testing::UnorderedElementsAre("encoder.weight", "head.weight", "head.bias"));
  EXPECT_THAT(audit.dropped, testing::ElementsAre("encoder.weight"));
  model->to(torch::kFloat64);
  EXPECT_NO_THROW(transfer_given(weights, *model, "again"));  // takes the model's dtype

  job.options["rotary_fraction"] = 0.5;  // changes no shape
  EXPECT_THROW(check_made_for(weights, job, architecture, "again"), Error);
  job.name = "transformer";
  EXPECT_THROW(check_made_for(weights, job, architecture, "again"), Error);
  weights.tensors.erase("body.layers.0.norm1.bias");
  EXPECT_THROW(transfer_given(weights, *model, "again"), Error);
}

}  // namespace
}  // namespace spt::worker
