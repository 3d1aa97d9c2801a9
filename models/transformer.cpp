#include <torch/torch.h>

#include "models/architecture.h"
#include "models/layers/attention.h"
#include "models/layers/feed_forward.h"
#include "models/layers/residual.h"

namespace spt::models {
namespace {

struct TransformerOptions {
  int64_t n_layers = 2;
  int64_t d_model = 64;
  int64_t n_heads = 4;
  int64_t d_ff = 256;
  std::string position = "sinusoidal";
  std::string attention = "full";
  int64_t window = 256;
  int64_t look_backward = 1;
  int64_t look_forward = 1;
  std::string attention_init = "separate";
  bool causal = false;
  std::string norm = "layer";
  std::string norm_position = "pre";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "layers, each attention and feed-forward", .min = 1, .max = kMostLayers});
    visit("d_model", self.d_model, OptionInfo{.effect = "width D", .min = 1, .max = kLargestWidth});
    visit("n_heads", self.n_heads, OptionInfo{.effect = "attention heads; must divide d_model", .min = 1});
    visit("d_ff", self.d_ff, OptionInfo{.effect = "inner width of the feed-forward part", .min = 1});
    visit("position", self.position, OptionInfo{.effect = "how positions enter", .choices = {"sinusoidal", "rotary", "none"}});
    visit("attention", self.attention,
          OptionInfo{.effect = "which positions a query sees: all, or those of the blocks around it", .choices = {"full", "local"}});
    visit("window", self.window, OptionInfo{.effect = "local attention: length of a block", .min = 1, .unit = "positions"});
    visit("look_backward", self.look_backward,
          OptionInfo{.effect = "local attention: blocks before its own that a query sees", .min = 0, .unit = "blocks"});
    visit("look_forward", self.look_forward,
          OptionInfo{.effect = "local attention: blocks after its own that a query sees; 0 where causal", .min = 0, .unit = "blocks"});
    visit("attention_init", self.attention_init,
          OptionInfo{.effect = "the four projections of a layer: drawn apart, or copies of one draw as published",
                     .choices = {"separate", "copies"}});
    visit("causal", self.causal, OptionInfo{.effect = "a position sees itself and earlier ones only"});
    visit("norm", self.norm, OptionInfo{.effect = "kind of norm", .choices = {"layer", "batch", "rms", "scale"}});
    visit("norm_position", self.norm_position,
          OptionInfo{.effect = "norm before (with a final norm) or after each block", .choices = {"pre", "post"}});
  }
};

TransformerOptions transformer_options(const OptionMap& options) {
  return read_options<TransformerOptions>(options, "architecture 'transformer'");
}

AttentionOptions transformer_attention(const TransformerOptions& o) {
  AttentionOptions attention{.width = o.d_model,
                             .n_heads = o.n_heads,
                             .causal = o.causal,
                             .rotary = o.position == "rotary",
                             .copies = o.attention_init == "copies"};
  if (o.attention == "local") attention.local = LocalWindow{o.window, o.look_backward, o.look_forward};
  return attention;
}

void validate_transformer(const OptionMap& given) {
  const TransformerOptions o = transformer_options(given);
  if (o.d_model % o.n_heads != 0)
    throw Error("architecture 'transformer': n_heads = {} does not divide d_model = {}", o.n_heads, o.d_model);
  if (o.attention == "local" && o.causal && o.look_forward > 0)
    throw Error("architecture 'transformer': causal local attention needs look_forward = 0, not {}", o.look_forward);
  if (o.position == "rotary" && (o.d_model / o.n_heads) % 2 != 0)
    throw Error("architecture 'transformer': position = \"rotary\" needs an even width of a head, not {}", o.d_model / o.n_heads);
}

class TransformerLayer : public Layer {
 public:
  TransformerLayer(const TransformerOptions& o, double dropout) : residual_{o.norm_position == "pre", dropout} {
    norm1_ = register_module("norm1", make_norm(o.norm, o.d_model, false));
    attention_ = register_module("attention", std::make_shared<Attention>(transformer_attention(o)));
    norm2_ = register_module("norm2", make_norm(o.norm, o.d_model, false));
    feed_forward_ = register_module("feed_forward", std::make_shared<FeedForward>(o.d_model, o.d_ff, dropout));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) {
    const at::Tensor mixed = residual(x, real, *norm1_, residual_, [&](const at::Tensor& t) { return attention_->forward(t, real); });
    return residual(mixed, real, *norm2_, residual_, [&](const at::Tensor& t) { return feed_forward_->forward(t); });
  }

 private:
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<FeedForward> feed_forward_;
};

class TransformerBody : public Body {
 public:
  TransformerBody(const TransformerOptions& o, double dropout) : dropout_(dropout) {
    if (o.position == "sinusoidal") positions_.emplace(o.d_model);
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < o.n_layers; ++i) {
      layers_.push_back(std::make_shared<TransformerLayer>(o, dropout));
      list->push_back(layers_.back());
    }
    register_module("layers", list);
    if (o.norm_position == "pre") final_norm_ = register_module("final_norm", make_norm(o.norm, o.d_model, false));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    at::Tensor h = x;
    if (positions_) h = drop(h + positions_->table(x.size(1), x), dropout_, is_training());
    for (const auto& layer : layers_) h = layer->forward(h, real);
    return final_norm_ ? final_norm_->forward(h, real) : h;
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override { reset_children(*this, init, prefix); }
  ParameterRole role(const std::string& name) const override { return role_in_children(*this, name); }

 private:
  double dropout_;
  std::optional<Sinusoids> positions_;
  std::vector<std::shared_ptr<TransformerLayer>> layers_;
  std::shared_ptr<Norm> final_norm_;
};

Flops transformer_flops(const OptionMap& options, int64_t length) {
  const TransformerOptions o = transformer_options(options);
  return {0, static_cast<double>(o.n_layers) *
                 (attention_flops(transformer_attention(o), length) + feed_forward_flops(o.d_model, o.d_ff, length))};
}

}  // namespace

Architecture transformer() {
  return {
      .name = "transformer",
      .version = 1,
      .summary = "Transformer encoder: attention and feed-forward blocks; full or local; bidirectional or causal",
      .source = "arXiv:1706.03762; as in arXiv:2310.02980 (published code: src/models/sequence/mha.py, ff.py)",
      .options = schema_of<TransformerOptions>(),
      .causal = {{"causal", true}, {"look_forward", int64_t{0}}},
      .sizes = attention_stack_sizes(),
      .validate = validate_transformer,
      .width = [](const OptionMap& options) { return transformer_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        validate_transformer(options);
        return std::make_shared<TransformerBody>(transformer_options(options), dropout);
      },
      .body_flops = transformer_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
