#include "models/s4.h"

#include <torch/torch.h>

#include <cmath>

#include "models/layers/hippo.h"
#include "models/ssm_dense.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/state_spaces.h"

namespace spt::reference {
namespace {

MakeStateSpace s4_maker(const Case& c) {
  return [&c](const nlohmann::json& options) {
    return std::make_shared<models::S4StateSpace>(read_options<models::S4Options>(body_options(c, "s4", options), c.where("options")));
  };
}

MakeStateSpace ssm_dense_maker(const Case& c) {
  return [&c](const nlohmann::json& options) {
    return std::make_shared<models::SsmDenseStateSpace>(
        read_options<models::SsmDenseOptions>(body_options(c, "ssm-dense", options), c.where("options")));
  };
}

/// Five standard errors of a mean of `count` draws with standard deviation `std`.
double five_errors(double std, int64_t count) { return 5 * std / std::sqrt(static_cast<double>(count)); }

/// The statistics that a case may state of the random values.
void check_s4_draws(Case& c, models::S4StateSpace& ssm) {
  const auto values = ssm.named_parameters();
  const at::Tensor log_dt = values["log_dt"].detach(), C = values["C"].detach(), D = values["D"].detach();
  JsonReader log_dt_range(c.json().at("statistics").at("log_dt"), c.where("log_dt"));
  const auto low = log_dt_range.get<double>("low"), high = log_dt_range.get<double>("high");
  log_dt_range.finish();
  const double spread = (high - low) / std::sqrt(12.0);
  // Drawn in float32, so the ends are met to its rounding.
  c.check("log_dt", log_dt.min().item<double>() >= low - 1e-5 && log_dt.max().item<double>() <= high + 1e-5, "outside its range");
  const auto near = [&](const std::string& what, double got, double want, double error) {
    c.check(what, std::abs(got - want) <= error, fmt::format("{:.6g}, expected {:.6g} to {:.2g}", got, want, error));
  };
  near("log_dt mean", log_dt.mean().item<double>(), (low + high) / 2, five_errors(spread, log_dt.numel()));
  near("log_dt std", log_dt.std().item<double>(), spread, five_errors(spread, log_dt.numel()));
  const std::map<std::string, std::function<void(double)>> claims = {
      {"C_real_std",
       [&](double want) { near("C_real_std", C.select(-1, 0).std().item<double>(), want, five_errors(want, C.numel() / 2)); }},
      {"C_imag_std",
       [&](double want) { near("C_imag_std", C.select(-1, 1).std().item<double>(), want, five_errors(want, C.numel() / 2)); }},
      {"C_abs_sq_mean",
       [&](double want) { near("C_abs_sq_mean", C.square().sum(-1).mean().item<double>(), want, five_errors(want, C.numel() / 2)); }},
      {"D_std", [&](double want) { near("D_std", D.std().item<double>(), want, five_errors(want, D.numel())); }}};
  for (const auto& [name, want] : c.json().at("statistics").items()) {
    if (name == "log_dt") continue;
    if (!claims.contains(name)) throw Error("{}: nothing knows the statistic '{}'", c.name(), name);
    claims.at(name)(want.get<double>());
  }
}

}  // namespace

void s4_kernel_case(Case& c) { state_space_kernel_case(c, s4_maker(c)); }

void s4_layer_case(Case& c) { state_space_layer_case(c, s4_maker(c)); }

void s4_init_case(Case& c) {
  nlohmann::json given = c.options();
  if (!given.contains("d_model")) given["d_model"] = 4096;  // enough draws for statistics
  if (!given.contains("n_ssm")) given["n_ssm"] = 1;
  const auto ssm = s4_maker(c)(given);
  ssm->to(torch::kFloat64);
  ssm->reset_parameters(Rng(1).stream("init"), "");
  const auto values = ssm->named_parameters();
  const at::Tensor P = torch::view_as_complex(values["P"].detach()[0][0].contiguous()),
                   B = torch::view_as_complex(values["B"].detach()[0][0].contiguous()), inv_w_real = values["inv_w_real"].detach()[0];
  const std::map<std::string, at::Tensor> outputs = {{"w_real", -inv_w_real.exp()},
                                                     {"w_imag", values["w_imag"].detach()[0]},
                                                     {"inv_w_real", inv_w_real},
                                                     {"P_abs_sq", P.abs().square()},
                                                     {"B_conj_P", torch::view_as_real(B * P.conj())},
                                                     {"A_dense", models::hippo_legs(given.at("d_state").get<int64_t>()).A}};
  for (const auto& [name, value] : outputs)
    if (c.has("output." + name)) c.compare_output(name, value);
  if (c.json().contains("statistics")) check_s4_draws(c, dynamic_cast<models::S4StateSpace&>(*ssm));
}

void ssm_dense_kernel_case(Case& c) {
  const auto twin = c.take("input.nplr.");
  state_space_kernel_case(c, ssm_dense_maker(c));
  if (twin.empty()) return;
  // The same system as diagonal plus low rank: the kernel of s4 must be the same.
  const auto of = [&](const std::string& name) { return twin.at("ssm." + name); };
  models::S4Parameters p{of("log_dt"), of("inv_w_real"), of("w_imag"), of("P"), of("B"), of("C")};
  const int64_t length = c.options().at("length").get<int64_t>();
  if (of("kernel_length").item<int64_t>() == 0) p.C = p.C - models::s4_power_product(p, length);
  c.compare("K of the s4 kernel", models::s4_kernel(p, length, length), c.tensor("output.K"), c.tolerance("output"));
}

void ssm_dense_layer_case(Case& c) { state_space_layer_case(c, ssm_dense_maker(c)); }

}  // namespace spt::reference
