#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "models/architecture.h"

// Parameter counts of the published configurations, classifier with encoder and head (arXiv:2310.02980 and its code).
namespace spt::models {
namespace {

struct PublishedSize {
  std::string name;
  std::string architecture;
  OptionMap options;
  int64_t vocabulary;  ///< 0: values
  int64_t channels;
  int64_t outputs;
  std::string head;  ///< linear | hidden | retrieval
  double millions;
  double half_digit;  ///< half a unit of the last printed digit, in millions
};

int64_t count_parameters(const PublishedSize& row) {
  const Architecture& architecture = find_architecture(row.architecture);
  ModelSpec spec;
  spec.options = complete(architecture.options, row.options, row.name);
  spec.input = {.vocabulary = row.vocabulary, .channels = row.channels, .max_length = 1024};
  spec.head = {
      .kind = row.head == "retrieval" ? "retrieval" : "pooled", .hidden = row.head == "hidden" ? "relu" : "none", .outputs = row.outputs};
  int64_t count = 0;
  for (const auto& parameter : build_model(architecture, spec)->parameters()) count += parameter.numel();
  return count;
}

OptionMap transformer_of(int64_t n_layers, int64_t d_model, int64_t n_heads, int64_t d_ff, const std::string& position = "sinusoidal") {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"n_heads", n_heads}, {"d_ff", d_ff}, {"position", position}};
}

OptionMap s4_of(int64_t n_layers, int64_t d_model, int64_t d_state, int64_t n_ssm, bool pre = true, bool bidirectional = true) {
  return {{"n_layers", n_layers},
          {"d_model", d_model},
          {"d_state", d_state},
          {"n_ssm", n_ssm},
          {"bidirectional", bidirectional},
          {"norm_position", std::string(pre ? "pre" : "post")}};
}

OptionMap dlr_of(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{1024}}}; }

OptionMap mega_of(int64_t n_layers, int64_t d_model, int64_t d_value, int64_t chunk) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_attention", int64_t{64}},  {"d_value", d_value}, {"d_state", int64_t{16}},
          {"d_ff", 2 * d_model},  {"chunk", chunk},     {"norm", std::string("batch")}};
}

/// Attention over the whole row. Its longest row is not stated: 4096 is the one power of two that gives the published count.
OptionMap mega_whole(int64_t n_layers, int64_t d_model, int64_t d_value) {
  OptionMap options = mega_of(n_layers, d_model, d_value, 0);
  options["max_positions"] = int64_t{4096};
  options["norm"] = std::string("layer");
  options["norm_position"] = std::string("post");
  return options;
}

const std::vector<PublishedSize>& published_sizes() {
  static const std::vector<PublishedSize> kRows = {
      {"ListOps, paper", "transformer", transformer_of(6, 512, 8, 1024), 19, 0, 10, "linear", 12.63, 0.005},
      {"ListOps, config", "transformer", transformer_of(6, 512, 8, 2048), 19, 0, 10, "linear", 18.93, 0.005},
      {"Text, paper", "transformer", transformer_of(6, 512, 8, 1024), 136, 0, 2, "hidden", 12.95, 0.005},
      {"Text, config", "transformer", transformer_of(6, 512, 8, 2048), 136, 0, 2, "hidden", 19.25, 0.005},
      {"Retrieval, table 1", "transformer", transformer_of(4, 128, 4, 512), 99, 0, 2, "retrieval", 0.872, 0.0005},
      {"Retrieval, rotary", "transformer", transformer_of(6, 128, 4, 512, "rotary"), 99, 0, 2, "retrieval", 1.268, 0.0005},
      {"Image, table 1", "transformer", transformer_of(3, 64, 4, 128), 0, 1, 10, "hidden", 0.105, 0.0005},
      {"Image, rotary", "transformer", transformer_of(6, 256, 4, 512, "rotary"), 0, 1, 10, "hidden", 3.23, 0.005},
      {"Pathfinder, table 1", "transformer", transformer_of(4, 128, 8, 128), 0, 1, 2, "linear", 0.399, 0.0005},
      {"Pathfinder, rotary", "transformer", transformer_of(6, 128, 4, 512, "rotary"), 0, 1, 2, "linear", 1.19, 0.005},
      {"PathX, rotary", "transformer", transformer_of(5, 128, 4, 512, "rotary"), 0, 1, 2, "linear", 0.992, 0.0005},
      {"SC", "transformer", transformer_of(4, 128, 4, 128, "rotary"), 0, 1, 35, "linear", 0.403, 0.0005},
      {"BIDMC, paper", "transformer", transformer_of(4, 128, 4, 128, "rotary"), 0, 2, 1, "linear", 0.399, 0.0005},
      {"BIDMC, config", "transformer", transformer_of(4, 112, 8, 112, "rotary"), 0, 2, 1, "linear", 0.306, 0.0005},
      {"sCIFAR", "transformer", transformer_of(6, 256, 4, 512, "rotary"), 0, 3, 10, "hidden", 3.23, 0.005},
      {"S4 ListOps", "s4", s4_of(8, 128, 64, 128, false), 19, 0, 10, "linear", 0.600, 0.0005},
      {"S4 Text", "s4", s4_of(6, 256, 64, 256), 136, 0, 2, "linear", 1.323, 0.0005},
      {"S4 Retrieval", "s4", s4_of(6, 256, 64, 256), 99, 0, 2, "retrieval", 1.576, 0.0005},
      {"S4 Image", "s4", s4_of(6, 512, 64, 2, false), 0, 1, 10, "linear", 3.57, 0.005},
      {"S4 Pathfinder", "s4", s4_of(6, 256, 64, 256), 0, 1, 2, "linear", 1.289, 0.0005},
      {"S4 sCIFAR", "s4", s4_of(6, 512, 64, 2, false), 0, 3, 10, "linear", 3.57, 0.005},
      {"S4 SC", "s4", s4_of(6, 128, 64, 64), 0, 1, 35, "linear", 0.378, 0.0005},
      {"DLR ListOps", "dlr", dlr_of(8, 128), 19, 0, 10, "linear", 4.48, 0.005},
      {"DLR Text", "dlr", dlr_of(6, 256), 136, 0, 2, "linear", 7.13, 0.005},
      {"DLR Image", "dlr", dlr_of(6, 512), 0, 1, 10, "linear", 15.76, 0.005},
      {"DLR PathX", "dlr", dlr_of(6, 256), 0, 1, 2, "linear", 7.10, 0.005},
      {"MEGA Image", "mega", mega_of(8, 160, 320, 128), 0, 1, 10, "linear", 2.73, 0.005},
      {"MEGA ListOps", "mega", mega_whole(6, 80, 160), 19, 0, 10, "linear", 0.61, 0.005},
      {"S4 BIDMC", "s4", s4_of(6, 128, 256, 2), 0, 2, 1, "linear", 0.604, 0.0005},
  };
  return kRows;
}

TEST(PublishedSizes, AreThoseOfTheModelsWeBuild) {
  for (const PublishedSize& row : published_sizes())
    EXPECT_NEAR(static_cast<double>(count_parameters(row)) / 1e6, row.millions, row.half_digit) << row.name;
}

}  // namespace
}  // namespace spt::models
