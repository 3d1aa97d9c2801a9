#pragma once

#include <memory>

#include "models/architecture.h"
#include "tests/reference/case.h"

namespace spt::reference {

/// Options of a body as an architecture of ours takes them: what cases call null is 0, dropout (always 0) and `training` are none of them.
/// Batch norm counts pads, as the published code does, unless the case is one of the fair profile.
OptionMap body_options(const Case& c, const std::string& architecture, nlohmann::json given);

/// The whole model that `encoder`, `body`, `head` and `padding` of the options describe, in the type of the case and training mode; weights
/// not loaded.
std::shared_ptr<models::Model> build_case_model(const Case& c, JsonReader& options);

/// The mean and the standard deviation of each parameter of `module`, named below `prefix`, against those of case.json's `parameters`.
void compare_initial_values(Case& c, const torch::nn::Module& module, const std::string& prefix);

/// Tokens or values as input; values become a leaf that has a gradient.
models::ModelInput model_input(const at::Tensor& x, const at::Tensor& lengths);

}  // namespace spt::reference
