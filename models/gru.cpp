#include <torch/torch.h>

#include <cmath>

#include "models/architecture.h"
#include "models/layers/layer.h"

namespace spt::models {
namespace {

struct GruOptions {
  int64_t n_layers = 2;
  int64_t d_model = 64;
  bool bidirectional = true;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "stacked recurrent layers", .min = 1});
    visit("d_model", self.d_model,
          OptionInfo{.effect = "width D; a bidirectional layer has D/2 units each way, so D is even then", .min = 1});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "half of the units read backwards"});
  }
};

GruOptions gru_options(const OptionMap& given) {
  const auto options = read_options<GruOptions>(given, "architecture 'gru'");
  if (options.bidirectional && options.d_model % 2 != 0)
    throw Error("architecture 'gru': d_model = {} is odd; both directions share it", options.d_model);
  return options;
}

/// LibTorch's GRU with dropout between its layers.
///
/// Shapes: (B, L, D) -> (B, L, D). Parameters: rnn.weight_ih_l0 ... as LibTorch names them.
/// Pads: forwards they come last, so they reach no real position; backwards they would come first, so rows are packed to their lengths.
/// Random: every parameter uniform in +-1/sqrt(units), LibTorch's default.
class GruBody : public Body {
 public:
  GruBody(const GruOptions& o, double dropout) : units_(o.bidirectional ? o.d_model / 2 : o.d_model), bidirectional_(o.bidirectional) {
    const auto options = torch::nn::GRUOptions(o.d_model, units_).num_layers(o.n_layers).batch_first(true).bidirectional(o.bidirectional);
    // LibTorch warns about dropout where there is no second layer to drop the input of.
    rnn_ = register_module("rnn", torch::nn::GRU(torch::nn::GRUOptions(options).dropout(o.n_layers > 1 ? dropout : 0)));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    if (!real.defined() || !bidirectional_) return std::get<0>(rnn_->forward(x));
    namespace rnn = torch::nn::utils::rnn;
    const at::Tensor lengths = real.sum(1).clamp_min(1).cpu();
    const auto packed = rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true, /*enforce_sorted=*/false);
    return std::get<0>(rnn::pad_packed_sequence(std::get<0>(rnn_->forward_with_packed_input(packed)), /*batch_first=*/true, 0, x.size(1)));
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const double bound = 1 / std::sqrt(static_cast<double>(units_));
    for (const auto& parameter : named_parameters()) draw_uniform(parameter.value(), init, prefix + parameter.key(), -bound, bound);
  }
  ParameterRole role(const std::string& name) const override {
    return name.find("bias") == std::string::npos ? ParameterRole::kMatrix : ParameterRole::kBias;
  }

 private:
  int64_t units_;
  bool bidirectional_;
  torch::nn::GRU rnn_{nullptr};
};

Flops gru_flops(const OptionMap& given, int64_t length) {
  const GruOptions o = gru_options(given);
  const double D = static_cast<double>(o.d_model), units = o.bidirectional ? D / 2 : D, directions = o.bidirectional ? 2 : 1;
  return {0, 2 * static_cast<double>(o.n_layers * length) * directions * 3 * (units * D + units * units)};
}

OptionMap gru_size(int64_t n_layers, int64_t d_model) {
  return {{"n_layers", n_layers}, {"d_model", d_model}};
}

}  // namespace

Architecture gru() {
  return {
      .name = "gru",
      .version = 1,
      .summary = "Gated recurrent units, LibTorch's own: a plain recurrent baseline; bidirectional or causal",
      .source = "arXiv:1406.1078; torch::nn::GRU",
      .options = schema_of<GruOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", gru_size(2, 104)},
                {"300K", gru_size(2, 184)},
                {"1M", gru_size(2, 336)},
                {"3M", gru_size(2, 576)},
                {"10M", gru_size(2, 1056)}},
      .validate = [](const OptionMap& options) { gru_options(options); },
      .width = [](const OptionMap& options) { return gru_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return std::make_shared<GruBody>(gru_options(options), dropout);
      },
      .body_flops = gru_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
