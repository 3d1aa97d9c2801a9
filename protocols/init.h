#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/options.h"
#include "harness/base/rng.h"
#include "models/architecture.h"

namespace spt::protocols {

/// Standard deviation of what `normal` and `normal-state` draw. Source: never-from-scratch.md, the published ablation (apply_rand_init).
inline constexpr double kInitStd = 0.1;

/// How the parameters of a model begin:
///   default       as its architecture draws them
///   normal        every trained parameter from N(0, 0.1^2), both parts of complex ones; buffers and frozen tensors stay
///   normal-state  the same for parameters of a state space alone (roles state_*); other architectures keep their own init
const std::vector<std::string>& init_names();

/// Whether a trained parameter of this role is drawn anew. Errors: Error for an unknown init, with the known ones.
bool is_redrawn(const std::string& init, models::ParameterRole role);

/// Draws anew what `init` says, after reset_parameters and before any checkpoint is loaded.
/// Random: stream `draws` by the tensor's name, so neither order nor architecture can change a draw.
void apply_init(models::Model& model, const std::string& init, const Stream& draws);

/// What the parameters of one role began as.
struct InitGroup {
  std::string role;
  int64_t tensors = 0, values = 0;  ///< real numbers: a complex one counts twice
  bool redrawn = false;
  double mean = 0, std = 0;  ///< of the values, population standard deviation
};
/// One row a role that the model has, in the order of its parameters.
std::vector<InitGroup> init_groups(const models::Model& model, const std::string& init);

/// The option that every protocol has for it.
struct InitOptions {
  std::string init = "default";
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("init", self.init,
          OptionInfo{.effect = "how parameters begin: the architecture's own draws, all from N(0, 0.1^2), or those of a state space alone",
                     .choices = init_names()});
  }
};

}  // namespace spt::protocols
