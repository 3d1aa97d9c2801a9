#include "models/s4d.h"

#include <torch/torch.h>

#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/state_spaces.h"

namespace spt::reference {
namespace {

models::S4dOptions s4d_case_options(const Case& c, const nlohmann::json& options) {
  return read_options<models::S4dOptions>(body_options(c, "s4d", options), c.where("options"));
}

MakeStateSpace s4d_maker(const Case& c) {
  return [&c](const nlohmann::json& options) { return std::make_shared<models::S4dStateSpace>(s4d_case_options(c, options)); };
}

}  // namespace

void s4d_kernel_case(Case& c) { state_space_kernel_case(c, s4d_maker(c)); }

void s4d_layer_case(Case& c) { state_space_layer_case(c, s4d_maker(c)); }

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
