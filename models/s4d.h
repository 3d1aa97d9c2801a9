#pragma once

#include <memory>
#include <string>

#include "models/kernels/s4d_kernel.h"
#include "models/layers/linear.h"

namespace spt::models {

struct S4dOptions {
  int64_t n_layers = 4;
  int64_t d_model = 64;
  int64_t d_state = 64;
  int64_t n_ssm = 0;
  bool bidirectional = true;
  std::string measure = "diag-lin";
  std::string discretization = "bilinear";
  double dt_min = 0.001;
  double dt_max = 0.1;
  int64_t l_max = 0;
  std::string norm = "layer";
  std::string norm_position = "pre";
  std::string batch_statistics = "real";

  int64_t state_matrices() const { return n_ssm == 0 ? d_model : n_ssm; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  void validate() const;  ///< Errors: Error for sizes that do not fit together

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "layers", .min = 1});
    visit("d_model", self.d_model, OptionInfo{.effect = "width D, channels of the convolution", .min = 1});
    visit("d_state", self.d_state, OptionInfo{.effect = "state N of a channel, even: conjugate pairs count twice", .min = 2});
    visit("n_ssm", self.n_ssm,
          OptionInfo{.effect = "trained state matrices, shared by the channels; 0: one a channel; must divide d_model", .min = 0});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "a second kernel looks ahead"});
    visit("measure", self.measure, OptionInfo{.effect = "initial state matrix", .choices = {"diag-lin", "diag-inv", "diag-legs"}});
    visit("discretization", self.discretization, OptionInfo{.effect = "from continuous to discrete time", .choices = {"bilinear", "zoh"}});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "smallest initial step", .min = 1e-9, .unit = "positions"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "largest initial step", .min = 1e-9, .unit = "positions"});
    visit("l_max", self.l_max, OptionInfo{.effect = "longest kernel; 0: as long as the input", .min = 0, .unit = "positions"});
    visit("norm", self.norm, OptionInfo{.effect = "kind of norm", .choices = {"layer", "batch"}});
    visit("norm_position", self.norm_position,
          OptionInfo{.effect = "norm before (with a final norm) or after each layer", .choices = {"pre", "post"}});
    visit("batch_statistics", self.batch_statistics,
          OptionInfo{.effect = "positions that batch norm counts: real ones, or pads too as published", .choices = {"real", "all"}});
  }
};

/// Continuous-time state matrix at the start: Re w = -1/2; lin: Im w_n = pi n; inv: Im w_n = N/pi (N/(2n+1) - 1); legs: the first N/2
/// (ascending, negative) imaginary eigenvalues of the normal part of HiPPO-LegS.
///
/// Shapes: -> (N/2) complex128. Source: arXiv:2206.11893 section 4.
at::Tensor s4d_initial_state(const std::string& measure, int64_t d_state);

/// The kernel's parameters and the skip D.
///
/// Random: log_dt uniform in log [dt_min, dt_max], C complex normal with E|C|^2 = 1, D ~ N(0, 1); the rest in closed form, B = 1.
class S4dStateSpace : public Layer {
 public:
  explicit S4dStateSpace(const S4dOptions& options);
  at::Tensor kernel(int64_t length) const;        ///< (directions, D, length)
  at::Tensor forward(const at::Tensor& u) const;  ///< k * u + D u, (B, L, D)
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  S4dOptions options_;
  at::Tensor log_dt_, inv_w_real_, w_imag_, B_, C_, D_;
};

/// y = GLU(W drop(gelu(k * u + D u))), with u zeroed at pads first.
///
/// Shapes: u (B, L, D), real (B, L) bool or undefined -> (B, L, D); W Linear(D, 2D). What stands at pads in y is not zeroed.
class S4dLayer : public Layer {
 public:
  S4dLayer(const S4dOptions& options, double dropout);
  at::Tensor mix(const at::Tensor& u, const at::Tensor& real);
  const S4dStateSpace& state_space() const { return *ssm_; }

 private:
  double dropout_;
  std::shared_ptr<S4dStateSpace> ssm_;
  std::shared_ptr<Linear> output_;
};

}  // namespace spt::models
