#pragma once

#include <functional>
#include <memory>

#include "models/layers/ssm_layer.h"
#include "tests/reference/case.h"

namespace spt::reference {

/// Builds the state space of a case from the options of a body (d_model, d_state, ..), parameters not loaded.
using MakeStateSpace = std::function<std::shared_ptr<models::StateSpace>(const nlohmann::json& options)>;

/// kernel: options.length taps, and options.then_length after that; outputs K, K_then and the state that they leave behind; gradients by
/// the last kernel.
void state_space_kernel_case(Case& c, const MakeStateSpace& make);

/// layer: convolution + D u, GELU, Linear, GLU on input.x, and on input.x_then after that.
void state_space_layer_case(Case& c, const MakeStateSpace& make);

}  // namespace spt::reference
