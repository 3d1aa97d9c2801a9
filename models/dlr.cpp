#include "models/dlr.h"

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <numbers>

#include "models/kernels/dlr_kernel.h"

namespace spt::models {
namespace {

DlrOptions dlr_options(const OptionMap& given) {
  const auto options = read_options<DlrOptions>(given, "architecture 'dlr'");
  options.validate();
  return options;
}

OptionMap dlr_size(int64_t n_layers, int64_t d_model, int64_t d_state) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", d_state}};
}

}  // namespace

void DlrOptions::validate() const {
  if (dt_min > dt_max) throw Error("architecture 'dlr': dt_min = {} is above dt_max = {}", dt_min, dt_max);
}

DlrInitial dlr_initial(const DlrOptions& options, const at::Tensor& u, const at::Tensor& z) {
  const double low = std::log(options.dt_min), high = std::log(options.dt_max), N = static_cast<double>(options.d_state);
  const at::Tensor dt = torch::exp(low + u.to(torch::kFloat64) * (high - low));
  return {torch::sqrt(dt / 2), 2 * std::numbers::pi / N * torch::arange(options.d_state, torch::dtype(torch::kFloat64).device(u.device())),
          z.to(torch::kFloat64) / N};
}

DlrStateSpace::DlrStateSpace(const DlrOptions& options) : StateSpace(options), options_(options) {
  lambda_sqrt_neg_real_ = register_parameter("lambda_sqrt_neg_real", torch::empty({options.d_state}));
  lambda_imag_ = register_parameter("lambda_imag", torch::empty({options.d_state}));
  W_ = register_parameter("W", torch::empty({options.directions(), options.d_model, options.d_state, 2}));
  register_skip();
}

at::Tensor DlrStateSpace::kernel(int64_t length) { return dlr_kernel({lambda_sqrt_neg_real_, lambda_imag_, W_}, length); }

void DlrStateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  draw_uniform(lambda_sqrt_neg_real_, init, prefix + "lambda_sqrt_neg_real", 0.0, 1.0);
  draw_normal(W_, init, prefix + "W", 1.0);
  const DlrInitial initial = dlr_initial(options_, lambda_sqrt_neg_real_, W_);
  // Through float32, so that a model in float64 starts from the same numbers.
  lambda_sqrt_neg_real_.copy_(initial.lambda_sqrt_neg_real.to(torch::kFloat32));
  lambda_imag_.copy_(initial.lambda_imag.to(torch::kFloat32));
  W_.copy_(initial.W.to(torch::kFloat32));
  reset_skip(init, prefix);
}

ParameterRole DlrStateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"lambda_sqrt_neg_real", ParameterRole::kStateReal},
                                                              {"lambda_imag", ParameterRole::kStateImag},
                                                              {"W", ParameterRole::kStateW},
                                                              {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

Architecture dlr() {
  return {
      .name = "dlr",
      .version = 1,
      .summary = "Diagonal linear RNN: long convolution with a kernel of complex modes that all channels share; bidirectional or causal",
      .source = "arXiv:2212.00768; layer as in arXiv:2310.02980 (published code: src/models/sequence/ss/dss.py)",
      .options = schema_of<DlrOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", dlr_size(4, 64, 64)},
                {"300K", dlr_size(4, 64, 256)},
                {"1M", dlr_size(6, 96, 384)},
                {"3M", dlr_size(6, 128, 896)},
                {"10M", dlr_size(8, 256, 1024)}},
      .validate = [](const OptionMap& options) { dlr_options(options); },
      .width = [](const OptionMap& options) { return dlr_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        const DlrOptions o = dlr_options(options);
        return make_ssm_body(o, dropout, [&] { return std::make_shared<DlrStateSpace>(o); });
      },
      .body_flops =
          [](const OptionMap& options, int64_t length) {
            const DlrOptions o = dlr_options(options);
            return ssm_body_flops(o, length, dlr_kernel_flops(o.directions(), o.d_model, o.d_state, o.taps(length)));
          },
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
