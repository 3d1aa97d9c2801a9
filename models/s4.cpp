#include "models/s4.h"

#include <torch/torch.h>

#include <cmath>

#include "models/layers/hippo.h"

namespace spt::models {
namespace {

S4Options s4_options(const OptionMap& given) {
  const auto options = read_options<S4Options>(given, "architecture 's4'");
  options.validate("s4");
  options.validate_pairs("s4");
  return options;
}

/// The kernel is computed for l_max nodes however short a batch is; where l_max is 0, `length` stands for the longest row.
Flops s4_flops(const OptionMap& given, int64_t length) {
  const S4Options o = s4_options(given);
  return ssm_body_flops(o, length, s4_kernel_flops(o.directions(), o.d_model, o.d_state, o.l_max > 0 ? o.l_max : length));
}

OptionMap s4_size(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{64}}}; }

std::shared_ptr<Body> s4_body(const OptionMap& given, const InputSpec& input, double dropout) {
  S4Options o = s4_options(given);
  // C~ belongs to one length: with the longest row there can be, no order of batches and no evaluation decides it.
  if (o.l_max == 0) o.l_max = input.max_length;
  return make_ssm_body(o, dropout, [&] { return std::make_shared<S4StateSpace>(o); });
}

}  // namespace

S4StateSpace::S4StateSpace(const S4Options& options) : StateSpace(options), options_(options) {
  const int64_t H = options.d_model, copies = options.state_matrices(), pairs = options.d_state / 2;
  log_dt_ = register_parameter("log_dt", torch::empty({H}));
  inv_w_real_ = register_parameter("inv_w_real", torch::empty({copies, pairs}));
  w_imag_ = register_parameter("w_imag", torch::empty({copies, pairs}));
  P_ = register_parameter("P", torch::empty({options.rank, copies, pairs, 2}));
  B_ = register_parameter("B", torch::empty({1, copies, pairs, 2}));
  C_ = register_parameter("C", torch::empty({options.directions(), H, pairs, 2}));
  register_skip();
  kernel_length_ = register_buffer("kernel_length", torch::zeros({}, torch::kInt64));
}

at::Tensor S4StateSpace::kernel(int64_t length) {
  const int64_t period = prepare(length);
  return s4_kernel(parameters(), period, length);
}

/// The buffer's value, read from the device only after somebody wrote to it.
int64_t S4StateSpace::stored_length() {
  if (kernel_length_._version() != known_version_) {
    known_length_ = kernel_length_.item<int64_t>();
    known_version_ = kernel_length_._version();
  }
  return known_length_;
}

/// Makes C that of a kernel of at least `length`; answers the length it is for.
int64_t S4StateSpace::prepare(int64_t length) {
  if (stored_length() == 0) {
    const int64_t first = options_.l_max > 0 ? options_.l_max : length;
    store(C_.detach() - s4_power_product(parameters(), first), first);
  }
  while (stored_length() < length) store(C_.detach() + s4_power_product(parameters(), stored_length()), 2 * stored_length());
  return stored_length();
}

void S4StateSpace::store(const at::Tensor& C, int64_t length) {
  const torch::NoGradGuard no_grad;
  C_.copy_(C);
  kernel_length_.fill_(length);
}

void S4StateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  if (options_.measure == "random") {
    inv_w_real_.fill_(std::log(0.5));
    draw_normal(w_imag_, init, prefix + "w_imag", 1.0);
    w_imag_.exp_();
    draw_normal(P_, init, prefix + "P", std::sqrt(0.5));
    B_.copy_(torch::tensor({1.0, 0.0}).expand_as(B_));
  } else {
    const HippoLegsNplr legs = hippo_legs_nplr(options_.d_state);
    const at::Tensor P = torch::stack({legs.P, torch::zeros_like(legs.P)}, -1);
    inv_w_real_.copy_(torch::log(-torch::real(legs.w)).expand_as(inv_w_real_));
    w_imag_.copy_(torch::imag(legs.w).expand_as(w_imag_));
    P_.copy_(P.expand_as(P_));
    B_.copy_((std::sqrt(2.0) * P).expand_as(B_));
  }
  draw_uniform(log_dt_, init, prefix + "log_dt", std::log(options_.dt_min), std::log(options_.dt_max));
  draw_normal(C_, init, prefix + "C", std::sqrt(0.5));
  reset_skip(init, prefix);
  kernel_length_.zero_();
}

ParameterRole S4StateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"log_dt", ParameterRole::kStateDt}, {"inv_w_real", ParameterRole::kStateA},
                                                              {"w_imag", ParameterRole::kStateA},  {"P", ParameterRole::kStateA},
                                                              {"B", ParameterRole::kStateB},       {"C", ParameterRole::kStateC},
                                                              {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

void S4StateSpace::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  Module::to(device, dtype, non_blocking);
  kernel_length_.set_data(kernel_length_.to(torch::kInt64));
}

void S4StateSpace::to(torch::Dtype dtype, bool non_blocking) {
  Module::to(dtype, non_blocking);
  kernel_length_.set_data(kernel_length_.to(torch::kInt64));
}

Architecture s4() {
  return {
      .name = "s4",
      .version = 1,
      .summary = "Structured state space model: HiPPO matrix as normal plus low rank, long convolution; bidirectional or causal",
      .source = "arXiv:2111.00396; layer as in arXiv:2310.02980 (published code: src/models/sequence/ss/s4.py)",
      .options = schema_of<S4Options>(),
      .causal = {{"bidirectional", false}},
      .sizes =
          {{"100K", s4_size(4, 56)}, {"300K", s4_size(6, 96)}, {"1M", s4_size(6, 216)}, {"3M", s4_size(6, 432)}, {"10M", s4_size(7, 768)}},
      .validate = [](const OptionMap& options) { s4_options(options); },
      .width = [](const OptionMap& options) { return s4_options(options).d_model; },
      .build_body = s4_body,
      .body_flops = s4_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
