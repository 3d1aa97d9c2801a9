#pragma once

#include <string>

#include "models/kernels/s4_kernel.h"
#include "models/layers/ssm_layer.h"

namespace spt::models {

struct S4Options : SsmStateOptions {
  std::string measure = "legs";
  int64_t rank = 1;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_state(self, visit);
    visit("measure", self.measure, OptionInfo{.effect = "initial state matrix; random: without HiPPO", .choices = {"legs", "random"}});
    visit("rank", self.rank, OptionInfo{.effect = "of the term P P* that is taken from the diagonal", .min = 1, .max = 1});
  }
};

/// The kernel's parameters and the skip D. C is stored as C~ = C (I - Abar^l), l in the buffer kernel_length: 0 until the first kernel is
/// asked for, which rewrites C, outside the gradient, for l = l_max (the length asked for where l_max is 0). A longer request doubles:
/// C~ <- C~ (I + Abar^l), l <- 2 l. l travels with C~ in checkpoints and between stages, so C is never rewritten twice.
///
/// Random: log_dt uniform in log [dt_min, dt_max], C complex normal with E|C|^2 = 1, D ~ N(0, 1). `legs`: w, P, B = sqrt(2) P in closed
/// form (hippo_legs_nplr). `random`: w = -1/2 + i exp(N(0, 1)), P complex normal with E|P|^2 = 1, B = 1, each state matrix apart.
/// Source: arXiv:2111.00396 section 3; `random` as in the published code (src/models/hippo, dplr).
class S4StateSpace : public StateSpace {
 public:
  explicit S4StateSpace(const S4Options& options);
  at::Tensor kernel(int64_t length) override;  ///< (directions, D, length)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;
  /// As Module::to, but kernel_length stays an integer.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  using Module::to;

 private:
  S4Parameters parameters() const { return {log_dt_, inv_w_real_, w_imag_, P_, B_, C_}; }
  int64_t stored_length();
  int64_t prepare(int64_t length);
  void store(const at::Tensor& C, int64_t length);

  S4Options options_;
  at::Tensor log_dt_, inv_w_real_, w_imag_, P_, B_, C_, kernel_length_;
  uint32_t known_version_ = ~0U;
  int64_t known_length_ = 0;
};

}  // namespace spt::models
