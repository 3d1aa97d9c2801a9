#pragma once

#include <memory>
#include <string>

#include "models/layers/ssm_layer.h"

namespace spt::models {

struct DlrOptions : SsmOptions {
  int64_t d_state = 256;
  double dt_min = 0.0001;
  double dt_max = 0.1;

  void validate() const;  ///< Errors: Error for options that do not fit together

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_shared(self, visit);
    visit("d_state", self.d_state, OptionInfo{.effect = "modes N, shared by all channels; no conjugate pairs", .min = 1});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "twice the smallest initial decay of a mode", .min = 1e-9, .unit = "1/position"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "twice the largest initial decay of a mode", .min = 1e-9, .unit = "1/position"});
  }
};

/// Initial values, from u uniform in [0, 1) and z ~ N(0, 1): -Re lambda_n = dt_n / 2 with log dt_n = log dt_min + u_n (log dt_max - log
/// dt_min), Im lambda_n = 2 pi n / N, W = z / N.
///
/// Shapes: u (N), z (directions, H, N, 2) -> root of -Re lambda (N), Im lambda (N), W as z; computed in float64.
struct DlrInitial {
  at::Tensor lambda_sqrt_neg_real, lambda_imag, W;
};
DlrInitial dlr_initial(const DlrOptions& options, const at::Tensor& u, const at::Tensor& z);

/// The kernel's parameters and the skip D: nothing of it knows about positions but through the kernel.
///
/// Random: as dlr_initial(), D ~ N(0, 1).
class DlrStateSpace : public StateSpace {
 public:
  explicit DlrStateSpace(const DlrOptions& options);
  at::Tensor kernel(int64_t length) override;  ///< (directions, D, length)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  DlrOptions options_;
  at::Tensor lambda_sqrt_neg_real_, lambda_imag_, W_;
};

}  // namespace spt::models
