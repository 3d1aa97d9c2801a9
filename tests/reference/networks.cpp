#include "tests/reference/networks.h"

#include <torch/torch.h>

#include <set>

#include "tests/reference/handlers.h"

namespace spt::reference {
namespace {

models::InputSpec encoder_input(const Case& c, const nlohmann::json& given) {
  JsonReader reader(given, c.where("encoder"));
  const auto kind = reader.get<std::string>("kind");
  if (kind != "embedding" && kind != "linear") throw Error("{}: unknown kind of encoder '{}'", c.name(), kind);
  models::InputSpec input;
  if (kind == "embedding") input.vocabulary = reader.get<int64_t>("vocabulary");
  else input.channels = reader.get<int64_t>("channels");
  reader.finish();
  return input;
}

models::HeadSpec head_spec(const Case& c, const nlohmann::json& given) {
  JsonReader reader(given, c.where("head"));
  models::HeadSpec head;
  head.kind = reader.get<std::string>("kind");
  head.pool = reader.get<std::string>("pool", head.pool);
  head.hidden = reader.get<std::string>("hidden", head.hidden);
  head.outputs = reader.get<int64_t>("outputs", head.outputs);
  head.use_lengths = reader.get<bool>("use_lengths", head.use_lengths);
  reader.finish();
  return head;
}

bool masks_padding(const Case& c, const std::string& padding) {
  if (padding != "masked" && padding != "attended") throw Error("{}: unknown padding '{}'", c.name(), padding);
  return padding == "masked";
}

void require_no_dropout(const Case& c, const nlohmann::json& options) {
  if (options.contains("dropout") && options.at("dropout").get<double>() != 0)
    throw Error("{}: a case with dropout cannot be compared", c.name());
}

std::string named_architecture(const Case& c, const nlohmann::json& body) {
  if (!body.contains("architecture") || !body.at("architecture").is_string()) throw Error("{}: body names no architecture", c.name());
  return body.at("architecture").get<std::string>();
}

}  // namespace

OptionMap body_options(const Case& c, const std::string& architecture, nlohmann::json given) {
  require_no_dropout(c, given);
  for (const char* other : {"architecture", "dropout", "training", "ssm_lr"}) given.erase(other);
  if (given.contains("l_max") && given.at("l_max").is_null()) given["l_max"] = 0;
  const auto& schema = models::find_architecture(architecture).options;
  const bool has_statistics = std::any_of(schema.begin(), schema.end(), [](const OptionSchema& o) { return o.name == "batch_statistics"; });
  if (has_statistics && c.profile() != "fair") given["batch_statistics"] = "all";
  return complete(schema, options_from_json(given, c.where("body")), c.where("body"));
}

std::shared_ptr<models::Model> build_case_model(const Case& c, JsonReader& options) {
  models::ModelSpec spec;
  spec.input = encoder_input(c, options.at("encoder"));
  spec.head = head_spec(c, options.at("head"));
  spec.mask_padding = masks_padding(c, options.get<std::string>("padding", "masked"));
  const std::string architecture = named_architecture(c, options.at("body"));
  spec.options = body_options(c, architecture, options.at("body"));
  auto model = models::build_model(models::find_architecture(architecture), spec);
  model->to(c.type());
  model->train();
  return model;
}

models::ModelInput model_input(const at::Tensor& x, const at::Tensor& lengths) {
  models::ModelInput input;
  if (x.scalar_type() == torch::kInt64) input.tokens = x;
  else input.values = x.detach().clone().requires_grad_();
  input.lengths = lengths;
  return input;
}

void architecture_case(Case& c) {
  const auto& architecture = models::find_architecture(c.subject());
  nlohmann::json options = c.options();
  static const std::set<std::string> kAttend = {"dlr", "dss", "mega", "transformer"};  // the published ones ignore lengths
  const bool attended = kAttend.contains(architecture.name) && c.profile() != "fair";
  const bool masked = masks_padding(c, options.value("padding", attended ? "attended" : "masked"));
  const bool training = options.value("training", true);
  options.erase("padding");
  const auto body = architecture.build_body(body_options(c, architecture.name, options), {}, 0);
  body->to(c.type());
  body->train(training);
  load_strictly(*body, c.take("weight."), c.name());
  const at::Tensor x = c.input("x").requires_grad_();
  const at::Tensor lengths = c.has("input.lengths") ? c.input("lengths") : at::Tensor();
  const at::Tensor y = body->forward(x, masked ? models::real_positions(lengths, x.size(1)) : at::Tensor());
  c.compare_output("y", y);
  for (const auto& buffer : body->named_buffers())
    if (c.has("output." + buffer.key())) c.compare_output(buffer.key(), buffer.value());
  compare_gradients(c, *body, y, {{"x", x}});
  if (!c.has("output.y_eval")) return;
  body->eval();
  c.compare_output("y_eval", body->forward(x, masked ? models::real_positions(lengths, x.size(1)) : at::Tensor()));
}

void head_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  options.finish();
  load_strictly(*model, c.take("weight."), c.name());
  const models::ModelInput input = model_input(c.input("x"), c.has("input.lengths") ? c.input("lengths") : at::Tensor());
  const at::Tensor y = model->forward(input);
  c.compare_output("y", y);
  std::map<std::string, at::Tensor> leaves;
  if (input.values.defined()) leaves["x"] = input.values;
  compare_gradients(c, *model, y, leaves);
}

void compare_initial_values(Case& c, const torch::nn::Module& module, const std::string& prefix) {
  auto expected = c.json().at("parameters");
  for (const auto& parameter : module.named_parameters()) {
    SPT_CHECK(parameter.key().starts_with(prefix), "parameter '{}' is not below '{}'", parameter.key(), prefix);
    const std::string name = parameter.key().substr(prefix.size());
    if (!expected.contains(name)) throw Error("{}: no parameter '{}', which the network has", c.name(), name);
    JsonReader want(expected.at(name), c.where(name));
    const at::Tensor value = parameter.value().detach();
    c.check(name, value.sizes().vec() == want.get<std::vector<int64_t>>("shape"), "another shape");
    const double mean = want.get<double>("mean"), std = want.get<double>("std"), n = static_cast<double>(value.numel());
    want.get<std::string>("distribution");
    want.finish();
    // Five standard errors of the mean and, generously for both a normal and a uniform law, of the standard deviation.
    const double off_mean = std::abs(value.mean().item<double>() - mean), off_std = std::abs(value.std(false).item<double>() - std);
    c.check(name, off_mean <= 5 * std / std::sqrt(n) && off_std <= 5 * std / std::sqrt(n),
            fmt::format("mean off by {:.3g}, standard deviation by {:.3g}", off_mean, off_std));
    expected.erase(name);
  }
  for (const auto& [name, value] : expected.items()) throw Error("{}: parameter '{}' is none of the network's", c.name(), name);
}

void initial_model_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  options.finish();
  model->reset_parameters(Rng(1).stream("init"));
  compare_initial_values(c, *model, "");
}

}  // namespace spt::reference
