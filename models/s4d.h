#pragma once

#include <memory>
#include <string>

#include "models/kernels/s4d_kernel.h"
#include "models/layers/ssm_layer.h"

namespace spt::models {

struct S4dOptions : SsmStateOptions {
  std::string measure = "diag-lin";
  std::string discretization = "bilinear";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_state(self, visit);
    visit("measure", self.measure,
          OptionInfo{.effect = "initial state matrix; random: without HiPPO", .choices = {"diag-lin", "diag-inv", "diag-legs", "random"}});
    visit("discretization", self.discretization, OptionInfo{.effect = "from continuous to discrete time", .choices = {"bilinear", "zoh"}});
  }
};

/// Continuous-time state matrix at the start: Re w = -1/2; lin: Im w_n = pi n; inv: Im w_n = N/pi (N/(2n+1) - 1); legs: the first N/2
/// (ascending, negative) imaginary eigenvalues of the normal part of HiPPO-LegS.
///
/// Shapes: -> (N/2) complex128. Source: arXiv:2206.11893 section 4.
at::Tensor s4d_initial_state(const std::string& measure, int64_t d_state);

/// The kernel's parameters and the skip D.
///
/// Random: log_dt uniform in log [dt_min, dt_max], C complex normal with E|C|^2 = 1, D ~ N(0, 1); B = 1. A in closed form, or, measure
/// `random`, Re = -1/2 and Im = exp(N(0, 1)), each state matrix apart.
class S4dStateSpace : public StateSpace {
 public:
  explicit S4dStateSpace(const S4dOptions& options);
  at::Tensor kernel(int64_t length) override;  ///< (directions, D, length)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  S4dOptions options_;
  at::Tensor log_dt_, inv_w_real_, w_imag_, B_, C_;
};

}  // namespace spt::models
