#include <torch/torch.h>

#include <cmath>

#include "models/kernels/causal_convolution.h"
#include "models/kernels/selective_scan.h"
#include "models/layers/stack.h"

namespace spt::models {
namespace {

constexpr double kLeastStep = 1e-4;  // published floor of the initial steps

struct MambaOptions : StackOptions {
  MambaOptions() { norm = "rms"; }
  int64_t d_state = 16;
  int64_t d_conv = 4;
  int64_t expand = 2;
  int64_t dt_rank = 0;
  double dt_min = 0.001;
  double dt_max = 0.1;
  bool causal = true;

  int64_t inner() const { return expand * d_model; }
  int64_t rank() const { return dt_rank > 0 ? dt_rank : (d_model + 15) / 16; }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    StackOptions::visit_size(self, visit);
    visit("d_state", self.d_state, OptionInfo{.effect = "states N of a channel", .min = 1});
    visit("d_conv", self.d_conv, OptionInfo{.effect = "taps of the depthwise convolution before the scan", .min = 1, .unit = "positions"});
    visit("expand", self.expand, OptionInfo{.effect = "channels of the scan: E = expand D", .min = 1});
    visit("dt_rank", self.dt_rank, OptionInfo{.effect = "rank R of the step; 0: D / 16, rounded up", .min = 0});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "smallest initial step", .min = 1e-9, .unit = "positions"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "largest initial step", .min = 1e-9, .unit = "positions"});
    visit("causal", self.causal, OptionInfo{.effect = "always true: the scan looks back alone"});
    StackOptions::visit_norm(self, visit);
  }
};

MambaOptions mamba_options(const OptionMap& given) {
  const auto options = read_options<MambaOptions>(given, "architecture 'mamba'");
  if (!options.causal) throw Error("architecture 'mamba': causal = false is not possible; its scan looks back alone, so causal = true");
  if (options.dt_min > options.dt_max)
    throw Error("architecture 'mamba': dt_min = {} is above dt_max = {}", options.dt_min, options.dt_max);
  return options;
}

/// y = x W^T.
///
/// Random: uniform in +-bound, by default 1/sqrt(inputs).
class MambaProjection : public Layer {
 public:
  MambaProjection(int64_t inputs, int64_t outputs, double gain = 1) : bound_(gain / std::sqrt(static_cast<double>(inputs))) {
    weight = register_parameter("weight", torch::empty({outputs, inputs}));
  }
  at::Tensor forward(const at::Tensor& x) const { return torch::linear(x, weight); }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    draw_uniform(weight, init, prefix + "weight", -bound_, bound_);
  }
  ParameterRole role(const std::string&) const override { return ParameterRole::kMatrix; }

  at::Tensor weight;

 private:
  double bound_;
};

/// y_t = b + sum_k w_k x_{t - K + 1 + k}, channel by channel.
///
/// Shapes: x (B, L, E) -> (B, L, E); weight (E, 1, K), bias (E); kernels/causal_convolution.h. Random: uniform in +-1/sqrt(K), LibTorch's
/// default.
class CausalDepthwise : public Layer {
 public:
  CausalDepthwise(int64_t channels, int64_t taps) {
    weight_ = register_parameter("weight", torch::empty({channels, 1, taps}));
    bias_ = register_parameter("bias", torch::empty({channels}));
  }
  at::Tensor forward(const at::Tensor& x) const { return causal_convolution(x, weight_.squeeze(1).t(), bias_); }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const double bound = 1 / std::sqrt(static_cast<double>(weight_.size(2)));
    draw_uniform(weight_, init, prefix + "weight", -bound, bound);
    draw_uniform(bias_, init, prefix + "bias", -bound, bound);
  }
  ParameterRole role(const std::string& name) const override { return name == "bias" ? ParameterRole::kBias : ParameterRole::kMatrix; }

 private:
  at::Tensor weight_, bias_;
};

/// dt = softplus(W r + b) > 0.
///
/// Shapes: r (B, L, R) -> (B, L, E). Random: weight uniform in +-1/sqrt(R); bias so that softplus(b) is log-uniform in [dt_min, dt_max].
class MambaStep : public Layer {
 public:
  explicit MambaStep(const MambaOptions& o) : options_(o) {
    weight_ = register_parameter("weight", torch::empty({o.inner(), o.rank()}));
    bias_ = register_parameter("bias", torch::empty({o.inner()}));
  }
  at::Tensor forward(const at::Tensor& r) const { return torch::softplus(torch::linear(r, weight_, bias_)); }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    const double bound = 1 / std::sqrt(static_cast<double>(options_.rank()));
    draw_uniform(weight_, init, prefix + "weight", -bound, bound);
    draw_uniform(bias_, init, prefix + "bias", std::log(options_.dt_min), std::log(options_.dt_max));
    const at::Tensor dt = torch::exp(bias_).clamp_min(kLeastStep);
    bias_.copy_(dt + torch::log(-torch::expm1(-dt)));  // inverse of softplus
  }
  ParameterRole role(const std::string& name) const override { return name == "bias" ? ParameterRole::kStateDt : ParameterRole::kMatrix; }

 private:
  MambaOptions options_;
  at::Tensor weight_, bias_;
};

/// [x, z] = in_proj u; x = silu(conv x); [r, B, C] = x_proj x; y = out_proj((scan(x, step r, -exp A_log, B, C) + D x) silu(z)).
///
/// Shapes: u (B, L, D) -> (B, L, D); x, z (B, L, E), r (B, L, R), B and C (B, L, N); A_log (E, N), D (E). The scan is S6, selective_scan.h.
/// Pads: they come last and everything looks back, so they reach no real position.
/// Random: A_log = log 1 .. log N, D = 1; out_proj uniform in +-1/sqrt(E n_layers); the rest as in the parts.
/// Source: arXiv:2312.00752 section 3.4, algorithm 2 (published code: mamba_ssm/modules/mamba_simple.py)
class MambaBlock : public StackBlock {
 public:
  MambaBlock(const MambaOptions& o, double dropout) : StackBlock(o, dropout), options_(o) {
    const double residual_gain = 1 / std::sqrt(static_cast<double>(o.n_layers));
    in_proj_ = register_module("in_proj", std::make_shared<MambaProjection>(o.d_model, 2 * o.inner()));
    conv_ = register_module("conv", std::make_shared<CausalDepthwise>(o.inner(), o.d_conv));
    x_proj_ = register_module("x_proj", std::make_shared<MambaProjection>(o.inner(), o.rank() + 2 * o.d_state));
    step_ = register_module("dt_proj", std::make_shared<MambaStep>(o));
    out_proj_ = register_module("out_proj", std::make_shared<MambaProjection>(o.inner(), o.d_model, residual_gain));
    A_log_ = register_parameter("A_log", torch::empty({o.inner(), o.d_state}));
    D_ = register_parameter("D", torch::empty({o.inner()}));
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    StackBlock::reset_parameters(init, prefix);
    A_log_.copy_(torch::log(torch::arange(1, options_.d_state + 1, torch::kFloat64)).expand_as(A_log_));
    D_.fill_(1);
  }
  ParameterRole role(const std::string& name) const override {
    if (name == "A_log") return ParameterRole::kStateA;
    return name == "D" ? ParameterRole::kStateD : StackBlock::role(name);
  }

 protected:
  at::Tensor mix(const at::Tensor& u, const at::Tensor&) override {
    const auto halves = in_proj_->weight.chunk(2, 0);  // two products, so that both results are contiguous
    const at::Tensor x = torch::silu(conv_->forward(torch::linear(u, halves[0])));
    const auto parts = x_proj_->forward(x).split_with_sizes({options_.rank(), options_.d_state, options_.d_state}, -1);
    const at::Tensor y = selective_scan({x, step_->forward(parts[0]), -torch::exp(A_log_), parts[1], parts[2]});
    return out_proj_->forward(torch::addcmul(y.to(x.scalar_type()), x, D_.to(x.scalar_type())) * torch::silu(torch::linear(u, halves[1])));
  }

 private:
  MambaOptions options_;
  std::shared_ptr<MambaProjection> in_proj_, x_proj_, out_proj_;
  std::shared_ptr<CausalDepthwise> conv_;
  std::shared_ptr<MambaStep> step_;
  at::Tensor A_log_, D_;
};

Flops mamba_flops(const OptionMap& given, int64_t length) {
  const MambaOptions o = mamba_options(given);
  const int64_t E = o.inner(), products = 3 * o.d_model * E + E * (o.rank() + 2 * o.d_state) + o.rank() * E + E * o.d_conv;
  return {0, static_cast<double>(o.n_layers) * (2.0 * static_cast<double>(length * products) + selective_scan_flops(length, E, o.d_state))};
}

OptionMap mamba_size(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}}; }

}  // namespace

Architecture mamba() {
  return {
      .name = "mamba",
      .version = 1,
      .summary = "Selective state space model (S6): step, input and read-out depend on the input; causal only",
      .source = "arXiv:2312.00752 section 3, algorithm 2",
      .options = schema_of<MambaOptions>(),
      .causal = {{"causal", true}},
      .sizes = {{"100K", mamba_size(4, 56)},
                {"300K", mamba_size(6, 84)},
                {"1M", mamba_size(6, 160)},
                {"3M", mamba_size(8, 240)},
                {"10M", mamba_size(8, 448)}},
      .validate = [](const OptionMap& options) { mamba_options(options); },
      .width = [](const OptionMap& options) { return mamba_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return make_stack<MambaBlock>(mamba_options(options), dropout);
      },
      .body_flops = mamba_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
