#include <torch/torch.h>

#include "models/layers/attention.h"
#include "models/layers/feed_forward.h"
#include "models/layers/stack.h"

namespace spt::models {
namespace {

constexpr double kPythiaInitStd = 0.02;  // initializer_range of the published configuration

struct PythiaOptions : StackOptions {
  PythiaOptions() { n_layers = 2; }
  int64_t n_heads = 4;
  int64_t d_ff = 256;
  double rotary_fraction = 0.25;
  bool parallel_residual = true;
  bool causal = true;

  int64_t head_width() const { return d_model / n_heads; }
  int64_t rotary_width() const { return static_cast<int64_t>(rotary_fraction * static_cast<double>(head_width())); }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    StackOptions::visit_size(self, visit);
    visit("n_heads", self.n_heads, OptionInfo{.effect = "attention heads; must divide d_model", .min = 1});
    visit("d_ff", self.d_ff, OptionInfo{.effect = "inner width of the feed-forward part", .min = 1});
    visit("rotary_fraction", self.rotary_fraction,
          OptionInfo{.effect = "share of each head that rotary positions turn, its first features; 0: no positions", .min = 0, .max = 1});
    visit("parallel_residual", self.parallel_residual,
          OptionInfo{.effect = "attention and feed-forward read the same input and are added together, not one after the other"});
    visit("causal", self.causal, OptionInfo{.effect = "always true: a position sees itself and earlier ones only"});
  }
};

PythiaOptions pythia_options(const OptionMap& given) {
  const auto o = read_options<PythiaOptions>(given, "architecture 'pythia'");
  if (!o.causal) throw Error("architecture 'pythia': causal = false is not possible; it is a causal model, so causal = true");
  if (o.d_model % o.n_heads != 0) throw Error("architecture 'pythia': n_heads = {} does not divide d_model = {}", o.n_heads, o.d_model);
  if (o.rotary_fraction > 0 && (o.rotary_width() == 0 || o.rotary_width() % 2 != 0))
    throw Error(
        "architecture 'pythia': rotary_fraction = {} of a head of {} features turns {}; it must be an even number of at least 2, or "
        "rotary_fraction = 0",
        o.rotary_fraction, o.head_width(), o.rotary_width());
  return o;
}

AttentionOptions pythia_attention(const PythiaOptions& o) {
  return {.width = o.d_model,
          .n_heads = o.n_heads,
          .causal = true,
          .rotary = o.rotary_width() > 0,
          .rotary_width = o.rotary_width(),
          .rotary_pairs = RotaryPairs::kHalves};
}

/// One layer of GPT-NeoX. parallel_residual: y = x + drop(attention(norm1(x))) + drop(ff(norm2(x))); else the second branch reads the sum
/// of x and the first. Exact GELU; dropout on the two branches alone.
///
/// Shapes: x (B, L, D) -> (B, L, D). The published query_key_value is query, key and value apart (models/interchange.h).
/// Pads come last and no position looks ahead, so they need no care.
/// Random: matrices from N(0, 0.02^2), biases 0, as Hugging Face's GPTNeoXPreTrainedModel has it.
class PythiaLayer : public SequenceLayer {
 public:
  PythiaLayer(const PythiaOptions& o, double dropout) : parallel_(o.parallel_residual), residual_{.pre = true, .dropout = dropout} {
    norm1_ = register_module("norm1", make_norm("layer", o.d_model, false));
    attention_ = register_module("attention", std::make_shared<Attention>(pythia_attention(o)));
    norm2_ = register_module("norm2", make_norm("layer", o.d_model, false));
    feed_forward_ = register_module("feed_forward", std::make_shared<FeedForward>(o.d_model, o.d_ff, 0));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    const at::Tensor mixed = residual(x, real, *norm1_, residual_, [&](const at::Tensor& t) { return attention_->forward(t, real); });
    if (parallel_) return mixed + drop(feed_forward_->forward(norm2_->forward(x, real)), residual_.dropout, is_training());
    return residual(mixed, real, *norm2_, residual_, [&](const at::Tensor& t) { return feed_forward_->forward(t); });
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    reset_children(*this, init, prefix);
    for (const auto& parameter : named_parameters()) {
      const ParameterRole is = role(parameter.key());
      if (is == ParameterRole::kMatrix) draw_normal(parameter.value(), init, prefix + parameter.key(), kPythiaInitStd);
      if (is == ParameterRole::kBias) at::Tensor(parameter.value()).zero_();
    }
  }

 private:
  bool parallel_;
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<FeedForward> feed_forward_;
};

Flops pythia_flops(const OptionMap& given, int64_t length) {
  const PythiaOptions o = pythia_options(given);
  return {0,
          static_cast<double>(o.n_layers) * (attention_flops(pythia_attention(o), length) + feed_forward_flops(o.d_model, o.d_ff, length))};
}

std::vector<std::pair<std::string, OptionMap>> pythia_sizes() {
  auto sizes = attention_stack_sizes();
  sizes.emplace_back("pythia-70m", attention_stack_size(6, 512, 8, 2048));
  return sizes;
}

}  // namespace

Architecture pythia() {
  return {
      .name = "pythia",
      .version = 1,
      .summary = "GPT-NeoX body, as in Pythia: rotary positions on part of each head, parallel residual; causal only",
      .source = "arXiv:2204.06745 section 2.1, arXiv:2304.01373; as in arXiv:2310.02980 (EleutherAI/pythia-70m-deduped, body alone)",
      .options = schema_of<PythiaOptions>(),
      .causal = {{"causal", true}},
      .sizes = pythia_sizes(),
      .validate = [](const OptionMap& options) { pythia_options(options); },
      .width = [](const OptionMap& options) { return pythia_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return make_stack<PythiaLayer>(pythia_options(options), dropout);
      },
      .body_flops = pythia_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
