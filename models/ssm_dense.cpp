#include "models/ssm_dense.h"

#include <torch/torch.h>

#include <cmath>

#include "models/layers/hippo.h"

namespace spt::models {
namespace {

SsmDenseOptions ssm_dense_options(const OptionMap& given) {
  const auto options = read_options<SsmDenseOptions>(given, "architecture 'ssm-dense'");
  options.validate("ssm-dense");
  return options;
}

Flops ssm_dense_flops(const OptionMap& given, int64_t length) {
  const SsmDenseOptions o = ssm_dense_options(given);
  return ssm_body_flops(o, length, dense_kernel_flops(o.directions(), o.d_model, o.d_state, o.taps(length)));
}

OptionMap ssm_dense_size(int64_t n_layers, int64_t d_model) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", int64_t{32}}, {"n_ssm", int64_t{2}}};
}

}  // namespace

SsmDenseStateSpace::SsmDenseStateSpace(const SsmDenseOptions& options) : StateSpace(options), options_(options) {
  const int64_t H = options.d_model, copies = options.state_matrices(), N = options.d_state;
  log_dt_ = register_parameter("log_dt", torch::empty({H}));
  A_ = register_parameter("A", torch::empty({copies, N, N}));
  B_ = register_parameter("B", torch::empty({copies, N}));
  C_ = register_parameter("C", torch::empty({options.directions(), H, N}));
  register_skip();
}

at::Tensor SsmDenseStateSpace::kernel(int64_t length) { return dense_kernel({log_dt_, A_, B_, C_}, length); }

void SsmDenseStateSpace::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  if (options_.measure == "random") {
    draw_normal(A_, init, prefix + "A", 1 / std::sqrt(static_cast<double>(options_.d_state)));
    A_.sub_(torch::eye(options_.d_state, A_.options().requires_grad(false)));
    draw_normal(B_, init, prefix + "B", 1.0);
  } else {
    const HippoLegs legs = hippo_legs(options_.d_state);
    A_.copy_(legs.A.expand_as(A_));
    B_.copy_(legs.B.expand_as(B_));
  }
  draw_uniform(log_dt_, init, prefix + "log_dt", std::log(options_.dt_min), std::log(options_.dt_max));
  draw_normal(C_, init, prefix + "C", 1.0);
  reset_skip(init, prefix);
}

ParameterRole SsmDenseStateSpace::role(const std::string& name) const {
  static const std::map<std::string, ParameterRole> kRoles = {{"log_dt", ParameterRole::kStateDt},
                                                              {"A", ParameterRole::kStateA},
                                                              {"B", ParameterRole::kStateB},
                                                              {"C", ParameterRole::kStateC},
                                                              {"D", ParameterRole::kStateD}};
  return kRoles.at(name);
}

Architecture ssm_dense() {
  return {
      .name = "ssm-dense",
      .version = 1,
      .summary =
          "State space model with a full state matrix, HiPPO or random: what structure and HiPPO are compared with; bidirectional or "
          "causal",
      .source = "arXiv:2111.00396 eq. (1)-(5), section 2; layer as in arXiv:2310.02980",
      .options = schema_of<SsmDenseOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", ssm_dense_size(4, 90)},
                {"300K", ssm_dense_size(6, 136)},
                {"1M", ssm_dense_size(6, 264)},
                {"3M", ssm_dense_size(6, 472)},
                {"10M", ssm_dense_size(6, 888)}},
      .validate = [](const OptionMap& options) { ssm_dense_options(options); },
      .width = [](const OptionMap& options) { return ssm_dense_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        const SsmDenseOptions o = ssm_dense_options(options);
        return make_ssm_body(o, dropout, [&] { return std::make_shared<SsmDenseStateSpace>(o); });
      },
      .body_flops = ssm_dense_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
