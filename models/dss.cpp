#include "models/dss.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/kernels/dss_kernel.h"
#include "models/layers/hippo.h"

namespace spt::models {
namespace {

DssOptions dss_options(const OptionMap& given) {
  const auto options = read_options<DssOptions>(given, "architecture 'dss'");
  options.validate();
  return options;
}

OptionMap dss_size(int64_t n_layers, int64_t d_model) { return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{64}}}; }

}  // namespace

void DssOptions::validate() const {
  if (dt_min > dt_max) throw Error("architecture 'dss': dt_min = {} is above dt_max = {}", dt_min, dt_max);
}

DssStateSpace::DssStateSpace(const DssOptions& options, int64_t max_length) : StateSpace(options), options_(options) {
  const int64_t N = options.d_state;
  log_dt_ = register_parameter("log_dt", torch::empty({options.d_model}));
  if (options.version == "exp") {
    lambda_log_neg_real_ = register_parameter("lambda_log_neg_real", torch::empty({N}));
    lambda_imag_ = register_parameter("lambda_imag", torch::empty({N}));
  } else {
    lambda_ = register_parameter("lambda", torch::empty({N, 2}));
    if (options.softmax_over == "longest") softmax_length_ = options.taps(max_length);
  }
  W_ = register_parameter("W", torch::empty({options.directions(), options.d_model, N, 2}));
  register_skip();
}

at::Tensor DssStateSpace::kernel(int64_t length) {
  const int64_t span = softmax_length_ == 0 ? 0 : std::max(length, softmax_length_);
  return dss_kernel({log_dt_, lambda_log_neg_real_, lambda_imag_, lambda_, W_, span}, length);
}

void DssStateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  const bool exponential = options_.version == "exp";
  at::Tensor imaginary = exponential ? lambda_imag_ : lambda_.select(1, 1);
  if (options_.measure == "random") {
    draw_normal(imaginary, init, prefix + (exponential ? "lambda_imag" : "lambda"), 1.0);
    imaginary.exp_();
  } else {
    imaginary.copy_(hippo_legs_frequencies(2 * options_.d_state).narrow(0, options_.d_state, options_.d_state));
  }
  if (exponential) lambda_log_neg_real_.fill_(std::log(0.5));
  else lambda_.select(1, 0).fill_(-0.5);
  draw_uniform(log_dt_, init, prefix + "log_dt", std::log(options_.dt_min), std::log(options_.dt_max));
  draw_normal(W_, init, prefix + "W", 1.0);
  reset_skip(init, prefix);
}

ParameterRole DssStateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"log_dt", ParameterRole::kStateDt},
                                                              {"lambda_log_neg_real", ParameterRole::kStateReal},
                                                              {"lambda_imag", ParameterRole::kStateImag},
                                                              {"lambda", ParameterRole::kStateA},
                                                              {"W", ParameterRole::kStateW},
                                                              {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

Architecture dss() {
  return {
      .name = "dss",
      .version = 1,
      .summary =
          "Diagonal state space: as dlr, with a step for each channel and a kernel of exponentials or of their softmax over the length",
      .source = "arXiv:2203.14343 Proposition 1; layer as in arXiv:2310.02980 (published code: src/models/sequence/ss/dss.py)",
      .options = schema_of<DssOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", dss_size(4, 64)},
                {"300K", dss_size(6, 104)},
                {"1M", dss_size(5, 256)},
                {"3M", dss_size(6, 448)},
                {"10M", dss_size(7, 768)}},
      .validate = [](const OptionMap& options) { dss_options(options); },
      .width = [](const OptionMap& options) { return dss_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec& input, double dropout) -> std::shared_ptr<Body> {
        const DssOptions o = dss_options(options);
        return make_ssm_body(o, dropout, [&] { return std::make_shared<DssStateSpace>(o, input.max_length); });
      },
      .body_flops =
          [](const OptionMap& options, int64_t length) {
            const DssOptions o = dss_options(options);
            return ssm_body_flops(o, length, dss_kernel_flops(o.directions(), o.d_model, o.d_state, o.taps(length)));
          },
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
