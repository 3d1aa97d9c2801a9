#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "models/layers/mimo.h"
#include "models/layers/stack.h"

namespace spt::models {
namespace {

struct LruOptions : StackOptions {
  int64_t d_state = 64;
  bool bidirectional = true;
  double r_min = 0.9;
  double r_max = 0.999;
  double max_phase = 2 * std::numbers::pi;

  int64_t directions() const { return bidirectional ? 2 : 1; }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    StackOptions::visit_size(self, visit);
    visit("d_state", self.d_state, OptionInfo{.effect = "complex states N of a layer", .min = 1});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "the same recurrence runs backwards too, with a read-out of its own"});
    visit("r_min", self.r_min, OptionInfo{.effect = "smallest initial |lambda|", .min = 0, .max = 1});
    visit("r_max", self.r_max, OptionInfo{.effect = "largest initial |lambda|", .min = 0, .max = 1});
    visit("max_phase", self.max_phase, OptionInfo{.effect = "largest initial phase of lambda", .min = 1e-6, .max = 7, .unit = "rad"});
    StackOptions::visit_norm(self, visit);
  }
};

LruOptions lru_options(const OptionMap& given) {
  const auto options = read_options<LruOptions>(given, "architecture 'lru'");
  if (options.r_min >= options.r_max) throw Error("architecture 'lru': r_min = {} is not below r_max = {}", options.r_min, options.r_max);
  return options;
}

/// x_t = lambda x_{t-1} + exp(gamma_log) B u_t, y_t = Re(C x_t) + D u_t, lambda = exp(-exp(nu_log) + i exp(theta_log)).
///
/// Shapes: u (B, L, D) -> (B, L, D); nu_log, theta_log, gamma_log (N), B (N, D, 2), C (directions, D, N, 2), D (1, D).
/// Random: lambda uniform on the ring r_min <= |lambda| <= r_max, phase in [0, max_phase]; gamma = sqrt(1 - |lambda|^2); B, C complex
/// normal of variance 1 / D and 2 / N (1 / (2 D) and 1 / N each part); D ~ N(0, 1). Source: arXiv:2303.06349 section 3, appendix A; the
/// second direction as in s5.
class LinearRecurrentUnit : public Layer {
 public:
  explicit LinearRecurrentUnit(const LruOptions& o) : options_(o) {
    nu_log_ = register_parameter("nu_log", torch::empty({o.d_state}));
    theta_log_ = register_parameter("theta_log", torch::empty({o.d_state}));
    gamma_log_ = register_parameter("gamma_log", torch::empty({o.d_state}));
    B_ = register_parameter("B", torch::empty({o.d_state, o.d_model, 2}));
    C_ = register_parameter("C", torch::empty({o.directions(), o.d_model, o.d_state, 2}));
    D_ = register_parameter("D", torch::empty({1, o.d_model}));
  }
  at::Tensor forward(const at::Tensor& u) const {
    const at::Tensor radius = torch::exp(-torch::exp(nu_log_)), phase = torch::exp(theta_log_),
                     gamma = torch::exp(gamma_log_).unsqueeze(-1);
    const at::Tensor lambda = torch::stack({radius * torch::cos(phase), radius * torch::sin(phase)});
    const at::Tensor B = torch::cat({gamma * B_.select(-1, 0), gamma * B_.select(-1, 1)});
    return mimo_forward({lambda, B, C_, D_}, u);
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    constexpr double kLeast = 1e-8;  // keeps the logarithms finite
    draw_uniform(nu_log_, init, prefix + "nu_log", std::max(kLeast, options_.r_min * options_.r_min), options_.r_max * options_.r_max);
    nu_log_.copy_(torch::log(-0.5 * torch::log(nu_log_.clamp_max(1 - 1e-6))));
    draw_uniform(theta_log_, init, prefix + "theta_log", 0, options_.max_phase);
    theta_log_.copy_(torch::log(theta_log_.clamp_min(kLeast)));
    gamma_log_.copy_(0.5 * torch::log(-torch::expm1(-2 * torch::exp(nu_log_))));
    draw_normal(B_, init, prefix + "B", std::sqrt(0.5 / static_cast<double>(options_.d_model)));
    draw_normal(C_, init, prefix + "C", std::sqrt(1 / static_cast<double>(options_.d_state)));
    draw_normal(D_, init, prefix + "D", 1.0);
  }
  ParameterRole role(const std::string& name) const override {
    static const std::map<std::string, ParameterRole> kRoles = {
        {"nu_log", ParameterRole::kStateA}, {"theta_log", ParameterRole::kStateA}, {"gamma_log", ParameterRole::kStateB},
        {"B", ParameterRole::kStateB},      {"C", ParameterRole::kStateC},         {"D", ParameterRole::kStateD}};
    return kRoles.at(name);
  }

 private:
  LruOptions options_;
  at::Tensor nu_log_, theta_log_, gamma_log_, B_, C_, D_;
};

class LruBlock : public GatedBlock {
 public:
  LruBlock(const LruOptions& o, double dropout) : GatedBlock(o, dropout) {
    ssm_ = register_module("ssm", std::make_shared<LinearRecurrentUnit>(o));
  }

 protected:
  at::Tensor sequence_map(const at::Tensor& u) override { return ssm_->forward(u); }

 private:
  std::shared_ptr<LinearRecurrentUnit> ssm_;
};

Flops lru_flops(const OptionMap& given, int64_t length) {
  const LruOptions o = lru_options(given);
  const double layer =
      mimo_flops(length, o.d_model, o.d_state, o.directions()) + static_cast<double>(length) * gate_flops(o.d_model, false);
  return {0, static_cast<double>(o.n_layers) * layer};
}

OptionMap lru_size(int64_t n_layers, int64_t d_model, int64_t d_state) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", d_state}};
}

}  // namespace

Architecture lru() {
  return {
      .name = "lru",
      .version = 1,
      .summary = "Linear recurrent unit: complex diagonal recurrence in polar form with full matrices in and out; bidirectional or causal",
      .source = "arXiv:2303.06349 section 3, figure 1",
      .options = schema_of<LruOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", lru_size(4, 56, 56)},
                {"300K", lru_size(6, 80, 80)},
                {"1M", lru_size(6, 144, 144)},
                {"3M", lru_size(6, 248, 248)},
                {"10M", lru_size(6, 456, 456)}},
      .validate = [](const OptionMap& options) { lru_options(options); },
      .width = [](const OptionMap& options) { return lru_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return make_stack<LruBlock>(lru_options(options), dropout);
      },
      .body_flops = lru_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
