#pragma once

#include <string>

#include "models/kernels/dense_kernel.h"
#include "models/layers/ssm_layer.h"

namespace spt::models {

struct SsmDenseOptions : SsmStateOptions {
  std::string measure = "legs";
  std::string discretization = "bilinear";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_state(self, visit);
    visit("measure", self.measure, OptionInfo{.effect = "initial state matrix; random: without HiPPO", .choices = {"legs", "random"}});
    visit("discretization", self.discretization, OptionInfo{.effect = "from continuous to discrete time", .choices = {"bilinear"}});
  }
};

/// The kernel's parameters, every entry of A trained, and the skip D.
///
/// Random: log_dt uniform in log [dt_min, dt_max], C and D ~ N(0, 1). `legs`: A, B of HiPPO-LegS. `random`: A = Z / sqrt(N) - I with Z and
/// B ~ N(0, 1), each state matrix apart.
class SsmDenseStateSpace : public StateSpace {
 public:
  explicit SsmDenseStateSpace(const SsmDenseOptions& options);
  at::Tensor kernel(int64_t length) override;  ///< (directions, D, length)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  SsmDenseOptions options_;
  at::Tensor log_dt_, A_, B_, C_;
};

}  // namespace spt::models
