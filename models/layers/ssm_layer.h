#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "models/layers/linear.h"
#include "models/layers/stack.h"

namespace spt::models {

/// What every architecture has that is a stack of state space layers. One struct, so that the options have one name, meaning and default.
struct SsmOptions : StackOptions {
  bool bidirectional = true;
  int64_t l_max = 0;
  bool tie_dropout = false;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t taps(int64_t length) const;  ///< of the kernel for a row of `length` positions

  /// Part of the visit of an architecture's own options.
  template <class Self, class Visitor>
  static void visit_shared(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "layers", .min = 1, .max = kMostLayers});
    visit("d_model", self.d_model, OptionInfo{.effect = "width D, channels of the convolution", .min = 1, .max = kLargestWidth});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "a second kernel looks ahead"});
    visit("l_max", self.l_max, OptionInfo{.effect = "longest kernel; 0: as long as the input", .min = 0, .unit = "positions"});
    visit_norm(self, visit, {"layer", "batch"});
    visit("tie_dropout", self.tie_dropout, OptionInfo{.effect = "dropout draws once a feature of a row, for all its positions"});
  }
};

/// What those have whose channels each discretise one of n_ssm trained state matrices with a step of their own.
struct SsmStateOptions : SsmOptions {
  int64_t d_state = 64;
  int64_t n_ssm = 0;
  double dt_min = 0.001;
  double dt_max = 0.1;

  int64_t state_matrices() const { return n_ssm == 0 ? d_model : n_ssm; }
  void validate(std::string_view architecture) const;        ///< Errors: Error for sizes that do not fit together
  void validate_pairs(std::string_view architecture) const;  ///< Errors: Error for an odd d_state

  template <class Self, class Visitor>
  static void visit_state(Self& self, Visitor&& visit) {
    visit_shared(self, visit);
    visit("d_state", self.d_state,
          OptionInfo{.effect = "state N of a channel; of conjugate pairs both count, so it is even there", .min = 2});
    visit("n_ssm", self.n_ssm,
          OptionInfo{.effect = "trained state matrices, shared by the channels; 0: one a channel; must divide d_model", .min = 0});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "smallest initial step", .min = 1e-9, .unit = "positions"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "largest initial step", .min = 1e-9, .unit = "positions"});
  }
};

/// A linear map over time, given by its kernels, and the skip D.
///
/// Parameter: D (1, D), N(0, 1) at the start; the kernel's are the derived class's.
class StateSpace : public Layer {
 public:
  /// (directions, D, length); the first looks back, the second strictly ahead. Not const: a state space may rewrite its own parameters
  /// before their first use (s4).
  virtual at::Tensor kernel(int64_t length) = 0;
  at::Tensor forward(const at::Tensor& u);  ///< k * u + D u, (B, L, D)
  const SsmOptions& shared() const { return shared_; }

 protected:
  explicit StateSpace(const SsmOptions& options) : shared_(options) {}
  void register_skip();  ///< last of all parameters, so a derived constructor ends with it
  void reset_skip(const Stream& init, const std::string& prefix);

  SsmOptions shared_;
  at::Tensor D_;
};

/// y = GLU(W drop(gelu(k * u + D u))), with u zeroed at pads first.
///
/// Shapes: u (B, L, D), real (B, L) bool or undefined -> (B, L, D); W Linear(D, 2D). What stands at pads in y is not zeroed.
/// Parameters: ssm.*, output.*
/// Source: arXiv:2310.02980 (published code: src/models/sequence/ss/s4.py)
class SsmLayer : public SequenceLayer {
 public:
  SsmLayer(std::shared_ptr<StateSpace> ssm, double dropout);
  at::Tensor forward(const at::Tensor& u, const at::Tensor& real) override;
  const std::shared_ptr<StateSpace>& state_space() const { return ssm_; }

 private:
  double dropout_;
  std::shared_ptr<StateSpace> ssm_;
  std::shared_ptr<Linear> output_;
};

/// n_layers SsmLayers, each in a residual block of its own with a norm; a final norm where norms stand before.
///
/// Parameters: layers.i.{ssm, output, norm}.*, final_norm.*. `make` is called once a layer.
std::shared_ptr<Body> make_ssm_body(const SsmOptions& options, double dropout, const std::function<std::shared_ptr<StateSpace>()>& make);

/// FLOPs of such a body, given those of one layer's kernel for a row of `length` positions.
Flops ssm_body_flops(const SsmOptions& options, int64_t length, double kernel_flops);

}  // namespace spt::models
