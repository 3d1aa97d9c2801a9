#include "models/s4d.h"

#include <torch/torch.h>

#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"

namespace spt::reference {
namespace {

models::S4dOptions s4d_case_options(const Case& c, const nlohmann::json& options) {
  return read_options<models::S4dOptions>(body_options(c, "s4d", options), c.where("options"));
}

/// The state space without D, which no kernel needs and no kernel case has.
std::map<std::string, at::Tensor> with_skip(std::map<std::string, at::Tensor> weights, int64_t width) {
  weights["ssm.D"] = torch::zeros({1, width}, torch::kFloat64);
  return weights;
}

/// Puts the state space where a layer has it, so that names are those of the case.
class KernelOnly : public torch::nn::Module {
 public:
  explicit KernelOnly(const models::S4dOptions& options) { ssm = register_module("ssm", std::make_shared<models::S4dStateSpace>(options)); }
  std::shared_ptr<models::S4dStateSpace> ssm;
};

}  // namespace

void s4d_kernel_case(Case& c) {
  nlohmann::json given = c.options();
  const int64_t length = given.at("length").get<int64_t>();
  given.erase("length");
  const models::S4dOptions options = s4d_case_options(c, given);
  KernelOnly module(options);
  module.to(torch::kFloat64);
  load_strictly(module, with_skip(c.take("weight."), options.d_model), c.name());
  const at::Tensor K = module.ssm->kernel(length);
  c.compare_output("K", K);
  const at::Tensor loss = (K * c.input("cotangent")).sum();
  c.compare("loss", loss, c.tensor("loss"), c.tolerance("loss"));
  loss.backward();
  for (const auto& parameter : module.named_parameters())
    if (parameter.key() != "ssm.D")
      c.compare("grad." + parameter.key(), parameter.value().grad(), c.tensor("grad." + parameter.key()), c.tolerance("gradient"));
}

void s4d_layer_case(Case& c) {
  models::S4dLayer layer(s4d_case_options(c, c.options()), 0);
  layer.to(torch::kFloat64);
  load_strictly(layer, c.take("weight."), c.name());
  const at::Tensor x = c.input("x").requires_grad_();
  const at::Tensor real = c.has("input.lengths") ? models::real_positions(c.input("lengths"), x.size(1)) : at::Tensor();
  const at::Tensor y = layer.mix(x, real);
  c.compare_output("y", y);
  std::map<std::string, at::Tensor> leaves = {{"x", x}};
  if (c.has("input.x_then")) {  // a second call of another length; the loss is on it
    const at::Tensor x_then = c.input("x_then").requires_grad_();
    const at::Tensor y_then = layer.mix(x_then, {});
    c.compare_output("y_then", y_then);
    compare_gradients(c, layer, y_then, {{"x", x_then}});
    return;
  }
  compare_gradients(c, layer, y, leaves);
}

void s4d_init_case(Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  models::S4dOptions options;
  options.d_state = reader.get<int64_t>("d_state");
  options.n_ssm = reader.get<int64_t>("n_ssm");
  const auto measures = reader.get<std::vector<std::string>>("measures");
  reader.finish();
  options.d_model = 2 * options.n_ssm;
  for (const std::string& measure : measures) {
    options.measure = measure;
    models::S4dStateSpace ssm(options);
    ssm.to(torch::kFloat64);
    ssm.reset_parameters(Rng(1).stream("init"), "");
    const auto values = ssm.named_parameters();
    c.compare_output(measure + ".w_real", -values["inv_w_real"].exp());
    c.compare_output(measure + ".w_imag", values["w_imag"]);
    c.compare_output(measure + ".B", values["B"]);
  }
}

}  // namespace spt::reference
