#include "models/interchange.h"

#include <torch/torch.h>

#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"

// Weights and gradients under published names: imported, run, and the gradients exported again.
namespace spt::reference {
namespace {

/// The gradients of the model under published names: the renaming is linear, so gradients are renamed as weights are.
models::NamedTensors published_gradients(const models::PublishedNames& names, const models::Architecture& architecture,
                                         const OptionMap& options, const torch::nn::Module& model, const std::string& where) {
  models::NamedTensors gradients;
  for (const auto& parameter : model.named_parameters()) {
    const at::Tensor& gradient = parameter.value().grad();
    gradients[parameter.key()] = gradient.defined() ? gradient : torch::zeros_like(parameter.value());
  }
  for (const auto& buffer : model.named_buffers()) gradients[buffer.key()] = buffer.value();
  return models::to_published(names, architecture, options, gradients, where).tensors;
}

}  // namespace

void interchange_case(Case& c) {
  const models::PublishedNames& names = models::find_published_names(c.subject());
  JsonReader options(c.options(), c.where("options"));
  const auto model = build_case_model(c, options);
  options.finish();
  const auto& architecture = models::find_architecture(c.options().at("body").at("architecture").get<std::string>());
  const OptionMap body = body_options(c, architecture.name, c.options().at("body"));
  const models::NamedTensors published = c.take("weight.");
  const models::Renamed ours = models::from_published(names, architecture, body, published, {}, c.name());
  load_strictly(*model, ours.tensors, c.name());
  models::NamedTensors again = models::to_published(names, architecture, body, ours.tensors, c.name()).tensors;
  for (const std::string& name : ours.dropped) again.emplace(name, published.at(name));
  c.check("export", again.size() == published.size(), fmt::format("gives {} tensors of {}", again.size(), published.size()));
  for (const auto& [name, tensor] : published)
    c.check("export of " + name, again.contains(name) && torch::equal(again.at(name), tensor), "differs");
  const models::ModelInput input = model_input(c.input("x"), c.has("input.lengths") ? c.input("lengths") : at::Tensor());
  const at::Tensor y = model->forward(input);
  c.compare_output("y", y);
  if (!c.has("input.cotangent")) return;
  const at::Tensor loss = (y * c.input("cotangent")).sum();
  c.compare("loss", loss, c.tensor("loss"), c.tolerance("loss"));
  loss.backward();
  const models::NamedTensors gradients = published_gradients(names, architecture, body, *model, c.name());
  for (const auto& [name, want] : c.take("grad.")) {
    const auto found = gradients.find(name);
    if (name == "input.x" && input.values.defined()) c.compare("grad.input.x", input.values.grad(), want, c.tolerance("gradient"));
    else if (found == gradients.end()) c.check("grad." + name, false, "is no gradient of ours");
    else c.compare("grad." + name, found->second, want, c.tolerance("gradient"));
  }
}

}  // namespace spt::reference
