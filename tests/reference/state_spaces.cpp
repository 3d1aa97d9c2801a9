#include "tests/reference/state_spaces.h"

#include <torch/torch.h>

namespace spt::reference {
namespace {

/// Puts the state space where a layer has it, so that names are those of the case.
class KernelOnly : public torch::nn::Module {
 public:
  explicit KernelOnly(std::shared_ptr<models::StateSpace> state_space) { ssm = register_module("ssm", std::move(state_space)); }
  std::shared_ptr<models::StateSpace> ssm;
};

/// What a call leaves in the state space, where the case says it: C under the name C_tilde, and buffers. `suffix`: "" or "_then".
void compare_state(Case& c, const models::StateSpace& ssm, const std::string& suffix) {
  if (c.has("output.C_tilde" + suffix)) c.compare_output("C_tilde" + suffix, ssm.named_parameters()["C"]);
  for (const auto& buffer : ssm.named_buffers())
    if (c.has("output." + buffer.key() + suffix)) c.compare_output(buffer.key() + suffix, buffer.value());
}

/// D, which no kernel needs and no kernel case has.
void add_skip(std::map<std::string, at::Tensor>& weights, const models::StateSpace& ssm) {
  weights["ssm.D"] = torch::zeros_like(ssm.named_parameters()["D"], torch::kFloat64);
}

}  // namespace

void state_space_kernel_case(Case& c, const MakeStateSpace& make) {
  nlohmann::json given = c.options();
  const int64_t length = given.at("length").get<int64_t>(), then = given.value("then_length", int64_t{0});
  for (const char* other : {"length", "then_length"}) given.erase(other);
  KernelOnly module(make(given));
  module.to(c.type());
  auto weights = c.take("weight.");
  add_skip(weights, *module.ssm);
  load_strictly(module, weights, c.name());
  at::Tensor K = module.ssm->kernel(length);
  c.compare_output("K", K);
  compare_state(c, *module.ssm, "");
  if (then > 0) {
    K = module.ssm->kernel(then);
    c.compare_output("K_then", K);
    compare_state(c, *module.ssm, "_then");
  }
  if (c.leaves_gradients()) return;
  const at::Tensor loss = (K * c.input("cotangent")).sum();
  c.compare("loss", loss, c.tensor("loss"), c.tolerance("loss"));
  loss.backward();
  for (const auto& parameter : module.named_parameters())
    if (parameter.key() != "ssm.D")
      c.compare("grad." + parameter.key(), parameter.value().grad(), c.tensor("grad." + parameter.key()), c.tolerance("gradient"));
}

void state_space_layer_case(Case& c, const MakeStateSpace& make) {
  nlohmann::json given = c.options();
  given.erase("then_length");  // the length of input.x_then says it
  models::SsmLayer layer(make(given), 0);
  layer.to(c.type());
  load_strictly(layer, c.take("weight."), c.name());
  const auto real_of = [&](const std::string& name, int64_t length) {
    return c.has(name) ? models::real_positions(c.input(name.substr(6)), length) : at::Tensor();
  };
  at::Tensor x = c.input("x").requires_grad_();
  at::Tensor y = layer.forward(x, real_of("input.lengths", x.size(1)));
  c.compare_output("y", y);
  compare_state(c, *layer.state_space(), "");
  if (c.has("input.x_then")) {
    x = c.input("x_then").requires_grad_();
    y = layer.forward(x, real_of("input.lengths_then", x.size(1)));
    c.compare_output("y_then", y);
    compare_state(c, *layer.state_space(), "_then");
  }
  compare_gradients(c, layer, y, {{"x", x}});
}

}  // namespace spt::reference
