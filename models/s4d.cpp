#include "models/s4d.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "models/layers/hippo.h"

namespace spt::models {
namespace {

S4dOptions s4d_options(const OptionMap& given) {
  const auto options = read_options<S4dOptions>(given, "architecture 's4d'");
  options.validate("s4d");
  options.validate_pairs("s4d");
  return options;
}

Flops s4d_flops(const OptionMap& given, int64_t length) {
  const S4dOptions o = s4d_options(given);
  return ssm_body_flops(o, length, s4d_kernel_flops(o.directions(), o.d_model, o.d_state, o.taps(length)));
}

OptionMap s4d_size(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{64}}}; }

}  // namespace

at::Tensor s4d_initial_state(const std::string& measure, int64_t d_state) {
  const at::Tensor n = torch::arange(d_state / 2, torch::kFloat64);
  const double N = static_cast<double>(d_state);
  at::Tensor frequency;
  if (measure == "diag-lin") frequency = std::numbers::pi * n;
  else if (measure == "diag-inv") frequency = N / std::numbers::pi * (N / (2 * n + 1) - 1);
  else if (measure == "diag-legs") frequency = hippo_legs_frequencies(d_state).narrow(0, 0, d_state / 2);
  SPT_CHECK(frequency.defined(), "no measure is named '{}'", measure);
  return torch::complex(torch::full_like(frequency, -0.5), frequency);
}

S4dStateSpace::S4dStateSpace(const S4dOptions& options) : StateSpace(options), options_(options) {
  const int64_t H = options.d_model, copies = options.state_matrices(), pairs = options.d_state / 2;
  log_dt_ = register_parameter("log_dt", torch::empty({H}));
  inv_w_real_ = register_parameter("inv_w_real", torch::empty({copies, pairs}));
  w_imag_ = register_parameter("w_imag", torch::empty({copies, pairs}));
  B_ = register_parameter("B", torch::empty({copies, pairs, 2}));
  C_ = register_parameter("C", torch::empty({options.directions(), H, pairs, 2}));
  register_skip();
}

at::Tensor S4dStateSpace::kernel(int64_t length) {
  return s4d_kernel({log_dt_, inv_w_real_, w_imag_, B_, C_, options_.discretization == "bilinear"}, length);
}

void S4dStateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  if (options_.measure == "random") {
    inv_w_real_.fill_(std::log(0.5));
    draw_normal(w_imag_, init, prefix + "w_imag", 1.0);
    w_imag_.exp_();
  } else {
    const at::Tensor w = s4d_initial_state(options_.measure, options_.d_state);
    inv_w_real_.copy_(torch::log(-torch::real(w)).expand_as(inv_w_real_));
    w_imag_.copy_(torch::imag(w).expand_as(w_imag_));
  }
  B_.copy_(torch::tensor({1.0, 0.0}).expand_as(B_));
  draw_uniform(log_dt_, init, prefix + "log_dt", std::log(options_.dt_min), std::log(options_.dt_max));
  draw_normal(C_, init, prefix + "C", std::sqrt(0.5));
  reset_skip(init, prefix);
}

ParameterRole S4dStateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"log_dt", ParameterRole::kStateDt}, {"inv_w_real", ParameterRole::kStateA},
                                                              {"w_imag", ParameterRole::kStateA},  {"B", ParameterRole::kStateB},
                                                              {"C", ParameterRole::kStateC},       {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

Architecture s4d() {
  return {
      .name = "s4d",
      .version = 1,
      .summary = "Diagonal state space model: long convolution with a kernel of damped oscillations; bidirectional or causal",
      .source = "arXiv:2206.11893 eq. (4)-(6), section 4; layer as in arXiv:2310.02980 (published code: src/models/sequence/ss/s4.py)",
      .options = schema_of<S4dOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", s4d_size(4, 64)},
                {"300K", s4d_size(6, 104)},
                {"1M", s4d_size(5, 256)},
                {"3M", s4d_size(6, 448)},
                {"10M", s4d_size(7, 768)}},
      .validate = [](const OptionMap& options) { s4d_options(options); },
      .width = [](const OptionMap& options) { return s4d_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        const S4dOptions o = s4d_options(options);
        return make_ssm_body(o, dropout, [&] { return std::make_shared<S4dStateSpace>(o); });
      },
      .body_flops = s4d_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
