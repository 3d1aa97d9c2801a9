#include "models/s4d.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "models/kernels/long_convolution.h"
#include "models/layers/residual.h"

namespace spt::models {
namespace {

/// Imaginary eigenvalues of S = A + P P^T of HiPPO-LegS, which is skew but for its diagonal, ascending.
at::Tensor legs_frequencies(int64_t d_state) {
  const at::Tensor n = torch::arange(d_state, torch::kFloat64);
  const at::Tensor B = torch::sqrt(2 * n + 1), P = torch::sqrt(n + 0.5);
  const at::Tensor S = torch::outer(P, P) - torch::outer(B, B).tril(-1) - torch::diag(n + 1);
  const at::Tensor minus_i = torch::complex(torch::zeros({}, torch::kFloat64), -torch::ones({}, torch::kFloat64));
  return torch::linalg_eigvalsh(S * minus_i);
}

class S4dBlock : public S4dLayer {
 public:
  S4dBlock(const S4dOptions& o, double dropout) : S4dLayer(o, dropout), residual_{o.norm_position == "pre", dropout} {
    norm_ = register_module("norm", make_norm(o.norm, o.d_model, o.batch_statistics == "all"));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) {
    return residual(x, real, *norm_, residual_, [&](const at::Tensor& u) { return mix(u, real); });
  }

 private:
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm_;
};

class S4dBody : public Body {
 public:
  S4dBody(const S4dOptions& o, double dropout) {
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < o.n_layers; ++i) {
      layers_.push_back(std::make_shared<S4dBlock>(o, dropout));
      list->push_back(layers_.back());
    }
    register_module("layers", list);
    if (o.norm_position == "pre") final_norm_ = register_module("final_norm", make_norm(o.norm, o.d_model, o.batch_statistics == "all"));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    at::Tensor h = x;
    for (const auto& layer : layers_) h = layer->forward(h, real);
    return final_norm_ ? final_norm_->forward(h, real) : h;
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override { reset_children(*this, init, prefix); }
  ParameterRole role(const std::string& name) const override { return role_in_children(*this, name); }

 private:
  std::vector<std::shared_ptr<S4dBlock>> layers_;
  std::shared_ptr<Norm> final_norm_;
};

S4dOptions s4d_options(const OptionMap& given) {
  const auto options = read_options<S4dOptions>(given, "architecture 's4d'");
  options.validate();
  return options;
}

Flops s4d_flops(const OptionMap& given, int64_t length) {
  const S4dOptions o = s4d_options(given);
  const int64_t taps = o.l_max > 0 ? std::min(length, o.l_max) : length;
  const double D = static_cast<double>(o.d_model), L = static_cast<double>(length),
               transform = D * real_fft_flops(fft_length(length + taps));
  const Flops layer = {s4d_kernel_flops(o.directions(), o.d_model, o.d_state, taps) + transform, 2 * transform + 2 * L * D * 2 * D};
  return {layer.fixed * static_cast<double>(o.n_layers), layer.per_example * static_cast<double>(o.n_layers)};
}

OptionMap s4d_size(int64_t n_layers, int64_t d_model) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{64}}};
}

}  // namespace

void S4dOptions::validate() const {
  if (d_state % 2 != 0) throw Error("architecture 's4d': d_state = {} is odd; conjugate pairs need an even number", d_state);
  if (n_ssm > 0 && d_model % n_ssm != 0) throw Error("architecture 's4d': n_ssm = {} does not divide d_model = {}", n_ssm, d_model);
  if (dt_min > dt_max) throw Error("architecture 's4d': dt_min = {} is above dt_max = {}", dt_min, dt_max);
}

at::Tensor s4d_initial_state(const std::string& measure, int64_t d_state) {
  const at::Tensor n = torch::arange(d_state / 2, torch::kFloat64);
  const double N = static_cast<double>(d_state);
  at::Tensor frequency;
  if (measure == "diag-lin")
    frequency = std::numbers::pi * n;
  else if (measure == "diag-inv")
    frequency = N / std::numbers::pi * (N / (2 * n + 1) - 1);
  else if (measure == "diag-legs")
    frequency = legs_frequencies(d_state).narrow(0, 0, d_state / 2);
  SPT_CHECK(frequency.defined(), "no measure is named '{}'", measure);
  return torch::complex(torch::full_like(frequency, -0.5), frequency);
}

S4dStateSpace::S4dStateSpace(const S4dOptions& options) : options_(options) {
  const int64_t H = options.d_model, copies = options.state_matrices(), pairs = options.d_state / 2;
  log_dt_ = register_parameter("log_dt", torch::empty({H}));
  inv_w_real_ = register_parameter("inv_w_real", torch::empty({copies, pairs}));
  w_imag_ = register_parameter("w_imag", torch::empty({copies, pairs}));
  B_ = register_parameter("B", torch::empty({copies, pairs, 2}));
  C_ = register_parameter("C", torch::empty({options.directions(), H, pairs, 2}));
  D_ = register_parameter("D", torch::empty({1, H}));
}

at::Tensor S4dStateSpace::kernel(int64_t length) const {
  return s4d_kernel({log_dt_, inv_w_real_, w_imag_, B_, C_, options_.discretization == "bilinear"}, length);
}

at::Tensor S4dStateSpace::forward(const at::Tensor& u) const {
  const int64_t length = u.size(1), taps = options_.l_max > 0 ? std::min(length, options_.l_max) : length;
  return torch::addcmul(long_convolution(u, kernel(taps)), u, D_.to(u.scalar_type()));
}

void S4dStateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  const at::Tensor w = s4d_initial_state(options_.measure, options_.d_state);
  inv_w_real_.copy_(torch::log(-torch::real(w)).expand_as(inv_w_real_));
  w_imag_.copy_(torch::imag(w).expand_as(w_imag_));
  B_.copy_(torch::tensor({1.0, 0.0}).expand_as(B_));
  draw_uniform(log_dt_, init, prefix + "log_dt", std::log(options_.dt_min), std::log(options_.dt_max));
  draw_normal(C_, init, prefix + "C", std::sqrt(0.5));
  draw_normal(D_, init, prefix + "D", 1.0);
}

ParameterRole S4dStateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"log_dt", ParameterRole::kStateDt}, {"inv_w_real", ParameterRole::kStateA},
                                                              {"w_imag", ParameterRole::kStateA},  {"B", ParameterRole::kStateB},
                                                              {"C", ParameterRole::kStateC},       {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

S4dLayer::S4dLayer(const S4dOptions& options, double dropout) : dropout_(dropout) {
  ssm_ = register_module("ssm", std::make_shared<S4dStateSpace>(options));
  output_ = register_module("output", std::make_shared<Linear>(options.d_model, 2 * options.d_model));
}

at::Tensor S4dLayer::mix(const at::Tensor& u, const at::Tensor& real) {
  const at::Tensor visible = real.defined() ? u * real.unsqueeze(-1).to(u.scalar_type()) : u;
  const at::Tensor y = drop(torch::gelu(ssm_->forward(visible)), dropout_, is_training());
  return torch::glu(output_->forward(y), -1);
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
        return std::make_shared<S4dBody>(s4d_options(options), dropout);
      },
      .body_flops = s4d_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
