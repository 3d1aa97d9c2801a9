#include <torch/torch.h>

#include "models/dlr.h"
#include "models/dss.h"
#include "protocols/optimizer.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/state_spaces.h"

namespace spt::reference {
namespace {

models::DlrOptions dlr_case_options(const Case& c, const nlohmann::json& options) {
  return read_options<models::DlrOptions>(body_options(c, "dlr", options), c.where("options"));
}

models::DssOptions dss_case_options(const Case& c, const nlohmann::json& options) {
  return read_options<models::DssOptions>(body_options(c, "dss", options), c.where("options"));
}

std::shared_ptr<models::StateSpace> diagonal_state_space(const Case& c, const nlohmann::json& options) {
  if (c.subject() == "dss") return std::make_shared<models::DssStateSpace>(dss_case_options(c, options), 0);
  return std::make_shared<models::DlrStateSpace>(dlr_case_options(c, options));
}

/// The rates of tensors that have one of their own, and the decay of all, are what a case's groups say.
void check_state_groups(Case& c, const models::StateSpace& ssm) {
  if (!c.json().contains("groups")) return;
  for (const auto& row : c.json().at("groups")) {
    JsonReader reader(row, c.where("groups"));
    const auto tensor = reader.get<std::string>("tensor");
    const double lr = reader.get<double>("lr"), decay = reader.get<double>("weight_decay");
    reader.finish();
    const models::ParameterRole role = ssm.role(tensor.substr(std::string_view("ssm.").size()));
    const protocols::OptimizerRules rules{.name = "paper", .lr = 10 * lr, .weight_decay = 0.5, .lr_real = lr, .lr_imag = lr, .lr_w = lr};
    c.check(tensor, protocols::tensor_rule(rules, role) == protocols::TensorRule{lr, decay}, "another rate or decay");
  }
}

}  // namespace

void diagonal_kernel_case(Case& c) {
  state_space_kernel_case(c, [&c](const nlohmann::json& options) { return diagonal_state_space(c, options); });
}

void diagonal_layer_case(Case& c) {
  nlohmann::json given = c.options();
  given.erase("then_length");  // the length of input.x_then says it
  models::SsmLayer layer(diagonal_state_space(c, given), 0);
  layer.to(c.type());
  load_strictly(layer, c.take("weight."), c.name());
  // The published class ignores lengths.
  const at::Tensor lengths = c.has("input.lengths") ? c.input("lengths") : at::Tensor();
  const auto mix = [&](const at::Tensor& x) {
    return layer.forward(x, c.profile() == "fair" ? models::real_positions(lengths, x.size(1)) : at::Tensor());
  };
  const at::Tensor x = c.input("x").requires_grad_(), y = mix(x);
  c.compare_output("y", y);
  if (!c.has("input.x_then")) return compare_gradients(c, layer, y, {{"x", x}});
  const at::Tensor x_then = c.input("x_then").requires_grad_(), y_then = mix(x_then);
  c.compare_output("y_then", y_then);
  compare_gradients(c, layer, y_then, {{"x", x_then}});
}

void dlr_init_case(Case& c) {
  if (c.json().contains("statistics")) throw Error("{}: statistics of dlr are not compared", c.name());
  const models::DlrOptions options = dlr_case_options(c, c.options());
  const models::DlrInitial initial = models::dlr_initial(options, c.input("uniform"), c.input("normal"));
  c.compare_output("ssm.lambda_sqrt_neg_real", initial.lambda_sqrt_neg_real);
  c.compare_output("ssm.lambda_imag", initial.lambda_imag);
  c.compare_output("ssm.W", initial.W);
  check_state_groups(c, models::DlrStateSpace(options));
}

}  // namespace spt::reference
