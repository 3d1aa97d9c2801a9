#pragma once

#include <memory>
#include <string>

#include "models/layers/ssm_layer.h"

namespace spt::models {

struct DssOptions : SsmOptions {
  int64_t d_state = 64;
  std::string version = "exp";
  std::string softmax_over = "longest";
  std::string measure = "legs";
  double dt_min = 0.001;
  double dt_max = 0.1;

  void validate() const;  ///< Errors: Error for options that do not fit together

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_shared(self, visit);
    visit("d_state", self.d_state, OptionInfo{.effect = "modes N, shared by all channels; no conjugate pairs", .min = 1});
    visit("version", self.version,
          OptionInfo{.effect = "kernel: powers of modes that decay, or their softmax over the length", .choices = {"exp", "softmax"}});
    visit("softmax_over", self.softmax_over,
          OptionInfo{.effect = "length of the softmax: of the task's longest row, or of the padded batch at hand as published",
                     .choices = {"longest", "batch"}});
    visit("measure", self.measure, OptionInfo{.effect = "initial modes; random: without HiPPO", .choices = {"legs", "random"}});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "smallest initial step", .min = 1e-9, .unit = "positions"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "largest initial step", .min = 1e-9, .unit = "positions"});
  }
};

/// The kernel's parameters and the skip D.
///
/// `max_length`: of a row, for softmax_over `longest`; 0: the length at hand.
/// Random: log_dt uniform in log [dt_min, dt_max], real and imaginary parts of W and D ~ N(0, 1). Re lambda = -1/2; Im lambda, measure
/// `legs`: the N positive imaginary eigenvalues of the normal part of HiPPO-LegS of order 2 N; `random`: exp(N(0, 1)). Source of the
/// initial values: arXiv:2203.14343 section 3.
class DssStateSpace : public StateSpace {
 public:
  DssStateSpace(const DssOptions& options, int64_t max_length);
  at::Tensor kernel(int64_t length) override;  ///< (directions, D, length)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  DssOptions options_;
  int64_t softmax_length_ = 0;
  at::Tensor log_dt_, lambda_log_neg_real_, lambda_imag_, lambda_, W_;
};

}  // namespace spt::models
