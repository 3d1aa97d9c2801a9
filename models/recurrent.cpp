#include <torch/torch.h>

#include <cmath>

#include "models/architecture.h"
#include "models/layers/layer.h"

namespace spt::models {
namespace {

struct RecurrentOptions {
  int64_t n_layers = 2;
  int64_t d_model = 64;
  bool bidirectional = true;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t units() const { return d_model / directions(); }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "stacked recurrent layers", .min = 1, .max = kMostLayers});
    visit("d_model", self.d_model,
          OptionInfo{.effect = "width D; a bidirectional layer has D/2 units each way, so D is even then", .min = 1, .max = kLargestWidth});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "half of the units read backwards"});
  }
};

RecurrentOptions recurrent_options(const OptionMap& given, const std::string& name) {
  const auto options = read_options<RecurrentOptions>(given, fmt::format("architecture '{}'", name));
  if (options.bidirectional && options.d_model % 2 != 0)
    throw Error("architecture '{}': d_model = {} is odd; both directions share it", name, options.d_model);
  return options;
}

struct GruCell {
  using Module = torch::nn::GRU;
  using Options = torch::nn::GRUOptions;
  static constexpr int kGates = 3;
};

struct LstmCell {
  using Module = torch::nn::LSTM;
  using Options = torch::nn::LSTMOptions;
  static constexpr int kGates = 4;
};

/// LibTorch's own recurrent network with dropout between its layers.
///
/// gru: r, z = sigma(W x + b + U h + c), n = tanh(W_n x + b_n + r (U_n h + c_n)), h' = (1 - z) n + z h.
/// lstm: i, f, o = sigma(W x + b + U h + c), g = tanh(W_g x + b_g + U_g h + c_g), s' = f s + i g, h' = o tanh(s').
/// Shapes: (B, L, D) -> (B, L, D). Parameters: rnn.weight_ih_l0 ... as LibTorch names them.
/// Pads: forwards they come last, so they reach no real position; backwards they would come first, so rows are packed to their lengths.
/// Random: every parameter uniform in +-1/sqrt(units), LibTorch's default.
template <class Cell>
class RecurrentBody : public Body {
 public:
  RecurrentBody(const RecurrentOptions& o, double dropout) : options_(o) {
    auto options = typename Cell::Options(o.d_model, o.units()).num_layers(o.n_layers).batch_first(true).bidirectional(o.bidirectional);
    // LibTorch warns about dropout where there is no second layer to drop the input of.
    rnn_ = register_module("rnn", typename Cell::Module(options.dropout(o.n_layers > 1 ? dropout : 0)));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    if (!real.defined() || !options_.bidirectional) return std::get<0>(rnn_->forward(x));
    namespace rnn = torch::nn::utils::rnn;
    const at::Tensor lengths = real.sum(1).clamp_min(1).cpu();
    const auto packed = rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true, /*enforce_sorted=*/false);
    return std::get<0>(rnn::pad_packed_sequence(std::get<0>(rnn_->forward_with_packed_input(packed)), /*batch_first=*/true, 0, x.size(1)));
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const double bound = 1 / std::sqrt(static_cast<double>(options_.units()));
    for (const auto& parameter : named_parameters()) draw_uniform(parameter.value(), init, prefix + parameter.key(), -bound, bound);
  }
  ParameterRole role(const std::string& name) const override {
    return name.find("bias") == std::string::npos ? ParameterRole::kMatrix : ParameterRole::kBias;
  }

 private:
  RecurrentOptions options_;
  typename Cell::Module rnn_{nullptr};
};

/// The parts of an entry that follow from its name and cell.
template <class Cell>
Architecture recurrent_architecture(const std::string& name) {
  return {
      .name = name,
      .version = 1,
      .summary = {},
      .source = {},
      .options = schema_of<RecurrentOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {},
      .validate = [name](const OptionMap& options) { recurrent_options(options, name); },
      .width = [name](const OptionMap& options) { return recurrent_options(options, name).d_model; },
      .build_body = [name](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return std::make_shared<RecurrentBody<Cell>>(recurrent_options(options, name), dropout);
      },
      .body_flops = [name](const OptionMap& given, int64_t length) -> Flops {
        const RecurrentOptions o = recurrent_options(given, name);
        const double D = static_cast<double>(o.d_model), units = static_cast<double>(o.units());
        return {0, 2 * static_cast<double>(o.n_layers * length * o.directions()) * Cell::kGates * (units * D + units * units)};
      },
      .build_model = {},
      .model_flops = {},
  };
}

OptionMap recurrent_size(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}}; }

}  // namespace

Architecture gru() {
  Architecture architecture = recurrent_architecture<GruCell>("gru");
  architecture.summary = "Gated recurrent units, LibTorch's own: a plain recurrent baseline; bidirectional or causal";
  architecture.source = "arXiv:1406.1078; torch::nn::GRU";
  architecture.sizes = {{"100K", recurrent_size(2, 104)},
                        {"300K", recurrent_size(2, 184)},
                        {"1M", recurrent_size(2, 336)},
                        {"3M", recurrent_size(2, 576)},
                        {"10M", recurrent_size(2, 1056)}};
  return architecture;
}

Architecture lstm() {
  Architecture architecture = recurrent_architecture<LstmCell>("lstm");
  architecture.summary = "Long short-term memory, LibTorch's own: a plain recurrent baseline; bidirectional or causal";
  architecture.source = "doi:10.1162/neco.1997.9.8.1735; torch::nn::LSTM";
  architecture.sizes = {{"100K", recurrent_size(2, 90)},
                        {"300K", recurrent_size(2, 156)},
                        {"1M", recurrent_size(2, 288)},
                        {"3M", recurrent_size(2, 500)},
                        {"10M", recurrent_size(2, 912)}};
  return architecture;
}

}  // namespace spt::models
