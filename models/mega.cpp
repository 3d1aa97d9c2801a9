#include <torch/torch.h>

#include "models/architecture.h"
#include "models/kernels/ema_kernel.h"
#include "models/kernels/long_convolution.h"
#include "models/layers/chunk_attention.h"
#include "models/layers/feed_forward.h"
#include "models/layers/gated_update.h"
#include "models/layers/moving_average.h"
#include "models/layers/residual.h"

namespace spt::models {
namespace {

struct MegaOptions {
  int64_t n_layers = 4;
  int64_t d_model = 64;
  int64_t d_attention = 32;
  int64_t d_value = 128;
  int64_t d_state = 16;
  int64_t d_ff = 128;
  std::string attention = "softmax";
  bool bidirectional = true;
  bool causal_attention = false;
  int64_t chunk = 128;
  int64_t max_positions = 2048;
  std::string norm = "layer";
  std::string norm_position = "pre";

  ChunkAttention chunk_attention() const { return {chunk, attention == "laplace", causal_attention}; }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers,
          OptionInfo{.effect = "layers, each moving average, attention and feed-forward", .min = 1, .max = kMostLayers});
    visit("d_model", self.d_model, OptionInfo{.effect = "width D", .min = 1, .max = kLargestWidth});
    visit("d_attention", self.d_attention, OptionInfo{.effect = "width z of queries and keys", .min = 1});
    visit("d_value", self.d_value, OptionInfo{.effect = "width of values", .min = 1});
    visit("d_state", self.d_state, OptionInfo{.effect = "moving averages N a feature and direction", .min = 1});
    visit("d_ff", self.d_ff, OptionInfo{.effect = "inner width of the feed-forward part", .min = 1});
    visit("attention", self.attention, OptionInfo{.effect = "how scores become weights", .choices = {"softmax", "laplace"}});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "a second moving average looks ahead; says nothing of the attention"});
    visit("causal_attention", self.causal_attention, OptionInfo{.effect = "attention sees itself and earlier positions of its chunk only"});
    visit("chunk", self.chunk,
          OptionInfo{.effect = "length that attention is cut into; 0: it sees the whole row", .min = 0, .unit = "positions"});
    visit(
        "max_positions", self.max_positions,
        OptionInfo{
            .effect = "longest row where chunk is 0: the bias by distance has 2 max_positions - 1 values", .min = 1, .unit = "positions"});
    visit("norm", self.norm, OptionInfo{.effect = "kind of norm", .choices = {"layer", "batch", "rms", "scale"}});
    visit("norm_position", self.norm_position,
          OptionInfo{.effect = "norm before or after each part; no final norm", .choices = {"pre", "post"}});
  }
};

MegaOptions mega_options(const OptionMap& given) { return read_options<MegaOptions>(given, "architecture 'mega'"); }

/// A Linear of which MEGA draws the weight from N(0, 0.02^2) and starts the bias at 0.
class MegaLinear : public Linear {
 public:
  using Linear::Linear;
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    draw_normal(weight, init, prefix + "weight", 0.02);
    bias.zero_();
  }
};

/// Queries and keys from one shared vector: row 0 of scale and shift makes queries, row 1 keys.
///
/// Random: scale ~ N(0, 0.02^2), shift = 0.
class MegaQueryKey : public Layer {
 public:
  explicit MegaQueryKey(int64_t width) {
    scale_ = register_parameter("scale", torch::empty({2, width}));
    shift_ = register_parameter("shift", torch::empty({2, width}));
  }
  at::Tensor forward(const at::Tensor& shared, int64_t row) const { return torch::addcmul(shift_[row], shared, scale_[row]); }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    draw_normal(scale_, init, prefix + "scale", 0.02);
    shift_.zero_();
  }
  ParameterRole role(const std::string& name) const override { return name == "shift" ? ParameterRole::kBias : ParameterRole::kNorm; }

 private:
  at::Tensor scale_, shift_;
};

/// The bias of chunk_attention by distance. Random: N(0, 0.02^2).
class MegaPositions : public Layer {
 public:
  explicit MegaPositions(int64_t reach) { weight = register_parameter("weight", torch::empty({2 * reach - 1})); }
  void reset_parameters(const Stream& init, const std::string& prefix) override { draw_normal(weight, init, prefix + "weight", 0.02); }
  ParameterRole role(const std::string&) const override { return ParameterRole::kPosition; }

  at::Tensor weight;
};

/// x' = x + u (h - x), then a feed-forward block with its own residual and norm.
///
/// With n = norm(x) (pre) or x (post; the norm then follows the sum): m = silu(ema(n)); [u, s, r, c] = gates(m), u through a sigmoid, s and
/// r through silu; q, k = affine maps of s; a = attention(q, k, silu(value(n))); h = silu(c + hidden(a r)), dropped out.
/// Pads are zeroed before the moving average, hidden as keys, and left out of a batch norm's statistics.
class MegaLayer : public Layer {
 public:
  MegaLayer(const MegaOptions& o, double dropout) : options_(o), residual_{o.norm_position == "pre", dropout} {
    norm1_ = register_module("norm1", make_norm(o.norm, o.d_model, false));
    ema_ = register_module("ema", std::make_shared<MovingAverage>(o.d_model, o.d_state, o.bidirectional));
    value_ = register_module("value", std::make_shared<MegaLinear>(o.d_model, o.d_value));
    gates_ = register_module("gates", std::make_shared<MegaLinear>(o.d_model, 2 * o.d_model + o.d_attention + o.d_value));
    hidden_ = register_module("hidden", std::make_shared<MegaLinear>(o.d_value, o.d_model));
    query_key_ = register_module("query_key", std::make_shared<MegaQueryKey>(o.d_attention));
    position_bias_ = register_module("position_bias", std::make_shared<MegaPositions>(o.chunk > 0 ? o.chunk : o.max_positions));
    norm2_ = register_module("norm2", make_norm(o.norm, o.d_model, false));
    feed_forward_ = register_module("feed_forward", std::make_shared<FeedForward>(o.d_model, o.d_ff, dropout, Activation::kSilu));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) {
    const at::Tensor mixed = residual_.pre ? mix(x, norm1_->forward(x, real), real) : norm1_->forward(mix(x, x, real), real);
    return residual(mixed, real, *norm2_, residual_, [&](const at::Tensor& t) { return feed_forward_->forward(t); });
  }

 private:
  at::Tensor mix(const at::Tensor& x, const at::Tensor& n, const at::Tensor& real) {
    const at::Tensor visible = real.defined() ? n * real.unsqueeze(-1).to(n.scalar_type()) : n;
    const int64_t D = options_.d_model, z = options_.d_attention, v = options_.d_value;
    const auto gates = gates_->forward(torch::silu(ema_->forward(visible))).split_with_sizes({D, z + v, D}, -1);
    const auto shared = torch::silu(gates[1]).split_with_sizes({z, v}, -1);
    const at::Tensor attended = chunk_attention(query_key_->forward(shared[0], 0), query_key_->forward(shared[0], 1),
                                                torch::silu(value_->forward(n)), position_bias_->weight, real, options_.chunk_attention());
    const at::Tensor hidden = hidden_->forward(attended * shared[1]);
    const bool drops = residual_.dropout > 0 && is_training();
    if (!drops && x.scalar_type() == hidden.scalar_type()) return gated_update(x, gates[0], gates[2], hidden);
    const at::Tensor h = drop(torch::silu(gates[2] + hidden), residual_.dropout, is_training());
    return torch::lerp(x, h.to(x.scalar_type()), torch::sigmoid(gates[0]).to(x.scalar_type()));
  }

  MegaOptions options_;
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<MovingAverage> ema_;
  std::shared_ptr<MegaLinear> value_, gates_, hidden_;
  std::shared_ptr<MegaQueryKey> query_key_;
  std::shared_ptr<MegaPositions> position_bias_;
  std::shared_ptr<FeedForward> feed_forward_;
};

class MegaBody : public Body {
 public:
  MegaBody(const MegaOptions& o, double dropout) {
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < o.n_layers; ++i) {
      layers_.push_back(std::make_shared<MegaLayer>(o, dropout));
      list->push_back(layers_.back());
    }
    register_module("layers", list);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    at::Tensor h = x;
    for (const auto& layer : layers_) h = layer->forward(h, real);
    return h;
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    reset_children(*this, init, prefix);
  }
  ParameterRole role(const std::string& name) const override { return role_in_children(*this, name); }

 private:
  std::vector<std::shared_ptr<MegaLayer>> layers_;
};

Flops mega_flops(const OptionMap& given, int64_t length) {
  const MegaOptions o = mega_options(given);
  const double D = static_cast<double>(o.d_model), L = static_cast<double>(length), z = static_cast<double>(o.d_attention),
               v = static_cast<double>(o.d_value), layers = static_cast<double>(o.n_layers);
  const double transform = D * real_fft_flops(fft_length(2 * length));
  const double products = 2 * L * (D * v + D * (2 * D + z + v) + v * D + 2 * D * static_cast<double>(o.d_ff));
  const double kernel = ema_kernel_flops(o.d_model * (o.bidirectional ? 2 : 1), o.d_state, length);
  const double attention = chunk_attention_flops(o.d_attention, o.d_value, length, o.chunk_attention());
  return {layers * (kernel + transform), layers * (2 * transform + products + attention)};
}

OptionMap mega_size(int64_t n_layers, int64_t d_model, int64_t d_attention) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_attention", d_attention}, {"d_value", 2 * d_model}, {"d_ff", 2 * d_model}};
}

std::shared_ptr<Body> build_mega(const OptionMap& given, const InputSpec& input, double dropout) {
  const MegaOptions o = mega_options(given);
  if (o.chunk == 0 && input.max_length > o.max_positions)
    throw Error(
        "architecture 'mega': rows of up to {} positions, but max_positions = {} and chunk = 0 (the whole row); raise max_positions or set "
        "chunk",
        input.max_length, o.max_positions);
  return std::make_shared<MegaBody>(o, dropout);
}

}  // namespace

Architecture mega() {
  return {
      .name = "mega",
      .version = 1,
      .summary = "MEGA: gated attention inside chunks after damped moving averages; bidirectional or causal",
      .source = "arXiv:2209.10655; as in the published code of arXiv:2310.02980 (src/models/sequence/mega.py, ss/ema.py)",
      .options = schema_of<MegaOptions>(),
      .causal = {{"bidirectional", false}, {"causal_attention", true}},
      .sizes = {{"100K", mega_size(4, 40, 16)},
                {"300K", mega_size(4, 72, 32)},
                {"1M", mega_size(5, 120, 64)},
                {"3M", mega_size(8, 168, 64)},
                {"10M", mega_size(10, 280, 128)}},
      .validate = [](const OptionMap& options) { mega_options(options); },
      .width = [](const OptionMap& options) { return mega_options(options).d_model; },
      .build_body = build_mega,
      .body_flops = mega_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
