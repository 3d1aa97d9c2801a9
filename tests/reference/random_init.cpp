#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "protocols/init.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/training.h"

// Init `normal`: which tensors of a whole model are drawn anew, and from what.
namespace spt::reference {
namespace {

std::string body_label(const nlohmann::json& body) {
  return fmt::format("{}_{}_{}", body.at("architecture").get<std::string>(), body.at("norm").get<std::string>(),
                     body.at("norm_position").get<std::string>());
}

/// Tokens in, four classes out, as in the other cases of these bodies; state space tensors of rate 0 are buffers.
std::shared_ptr<models::Model> random_init_model(const Case& c, const nlohmann::json& body) {
  const nlohmann::json whole = {
      {"encoder", {{"kind", "embedding"}, {"vocabulary", 11}}}, {"head", {{"kind", "pooled"}, {"outputs", 4}}}, {"body", body}};
  JsonReader reader(whole, c.where("body"));
  auto model = build_case_model(c, reader);
  reader.finish();
  freeze_at_rate_zero(*model, published_rules(c, body, 1, 0));
  return model;
}

std::vector<std::string> changed_tensors(const std::vector<std::pair<std::string, at::Tensor>>& before, const models::Model& model,
                                         bool changed) {
  std::vector<std::string> names;
  for (const auto& [name, old] : before) {
    const at::Tensor* now = model.named_parameters().find(name);
    const bool same = torch::equal(old, now ? *now : model.named_buffers()[name]);
    if (same != changed) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void compare_name_lists(Case& c, const std::string& what, std::vector<std::string> got, const nlohmann::json& json) {
  auto want = json.get<std::vector<std::string>>();
  std::sort(want.begin(), want.end());
  c.check(what, got == want, fmt::format("are [{}], expected [{}]", fmt::join(got, ", "), fmt::join(want, ", ")));
}

/// Within five standard errors of N(mean, std^2).
void check_normal(Case& c, const std::string& label, const at::Tensor& values, double mean, double std) {
  const double n = static_cast<double>(values.numel());
  c.check(label + ": mean", std::abs(values.mean().item<double>() - mean) <= 5 * std / std::sqrt(n), "is off");
  c.check(label + ": standard deviation", std::abs(values.std().item<double>() - std) <= 5 * std / std::sqrt(2 * n), "is off");
}

void check_random_init(Case& c, const nlohmann::json& body, double mean, double std) {
  const std::string label = body_label(body);
  const auto model = random_init_model(c, body);
  const Stream draws = Rng(1).stream("init");
  model->reset_parameters(draws);
  std::vector<std::pair<std::string, at::Tensor>> before;
  for (const auto& list : {model->named_parameters(), model->named_buffers()})
    for (const auto& item : list) before.emplace_back(item.key(), item.value().detach().clone());
  protocols::apply_init(*model, "normal", draws);
  const std::vector<std::string> redrawn = changed_tensors(before, *model, true);
  compare_name_lists(c, label + ": redrawn", redrawn, c.json().at("redrawn").at(label));
  compare_name_lists(c, label + ": kept", changed_tensors(before, *model, false), c.json().at("kept").at(label));
  std::vector<at::Tensor> values;
  for (const std::string& name : redrawn) values.push_back(model->named_parameters()[name].detach().flatten());
  check_normal(c, label, torch::cat(values), mean, std);
}

}  // namespace

void random_init_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto mean = options.get<double>("mean"), std = options.get<double>("std");
  if (mean != 0 || std != protocols::kInitStd)
    throw Error("{}: init normal is N(0, {}^2), not N({}, {}^2)", c.name(), protocols::kInitStd, mean, std);
  for (const nlohmann::json& body : options.at("bodies")) check_random_init(c, body, mean, std);
  options.finish();
}

}  // namespace spt::reference
