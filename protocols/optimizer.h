#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/architecture.h"

namespace spt::protocols {

/// Learning rate before the schedule, and weight decay, of one tensor.
struct TensorRule {
  double lr = 0;
  double weight_decay = 0;
  bool operator==(const TensorRule&) const = default;
};

/// From the role of a tensor to its rule. Every rate follows the same schedule.
struct OptimizerRules {
  /// fair: decay on matrices only; state space A, B, dt at min(lr, state_lr).
  /// paper (README-ssm.md, "Groups"): everything is decayed except state space A, B, dt, which have rates of their own.
  std::string name = "fair";
  double lr = 1e-3;
  double weight_decay = 0.05;
  double state_lr = 1e-3;                                       ///< fair
  std::optional<double> lr_dt = {}, lr_a = {}, lr_b = {};       ///< paper; absent: lr
  std::optional<double> lr_real = {}, lr_imag = {}, lr_w = {};  ///< paper, of A by parts and of W; absent: lr
  /// paper: a published slip, by which lr_real counts from the second layer on and layer 0 has `lr` (README-ssm.md,
  /// optimizer_dlr_published).
  bool first_layer_slip = false;
};

/// Errors: Error for an unknown rule name.
TensorRule tensor_rule(const OptimizerRules& rules, models::ParameterRole role);

/// The role as reports spell it: matrix, bias, norm, embedding, position, state_a, ...
std::string role_name(models::ParameterRole role);

/// One trained tensor.
struct TrainedTensor {
  std::string name;
  at::Tensor tensor;  ///< the model's own parameter
  models::ParameterRole role;
  TensorRule rule;
};

/// Every parameter of the model that requires a gradient, in the model's order.
std::vector<TrainedTensor> trained_tensors(const models::Model& model, const OptimizerRules& rules);

/// Updates parameters from their gradients by LibTorch's fused kernels, at the rates and decays of their rules.
///
/// LibTorch's C++ optimizers have no fused path, and hide their state; here the state is plain tensors, so a checkpoint is a copy of them.
/// A parameter without a gradient is updated with a zero one: what a step does never depends on which parts of the model a batch reached.
/// Each is equal to the torch::optim class of its name within 1e-12 in float64 (tests/protocols/optimizer_test.cpp).
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  void zero_grad();
  /// Scales all gradients so that their global norm is at most `limit` (0: leaves them) and returns the norm from before.
  double clip(double limit);
  /// One update at learning rates rule.lr * factor.
  void step(double factor);
  /// Name of the first tensor with a gradient that is not finite; "" if all are.
  std::string first_bad_gradient() const;

  int64_t steps() const { return steps_; }
  const std::vector<TrainedTensor>& tensors() const { return tensors_; }
  /// "<slot>.NAME", slots as each class has them: the optimizer's own tensors, to copy from or into.
  std::vector<std::pair<std::string, at::Tensor>> state() const;
  void set_steps(int64_t steps);  ///< after state() was restored

 protected:
  /// `slots`: names of the tensors that it keeps of each parameter, zero at first.
  Optimizer(std::vector<TrainedTensor> tensors, const std::vector<std::string>& slots);

  /// Parameters of one rule, with their gradients, slots and step count (the kernels want it as a tensor).
  struct Group {
    TensorRule rule;
    std::vector<at::Tensor> parameters, gradients, steps;
    std::vector<std::vector<at::Tensor>> slots;
  };
  /// One update of a group at learning rate `lr`; its step count already counts this one.
  virtual void update(Group& group, double lr) = 0;

 private:
  std::vector<at::Tensor> gradients() const;
  std::vector<TrainedTensor> tensors_;
  std::vector<std::string> slot_names_;
  std::vector<std::vector<at::Tensor>> slots_;  ///< by slot, then by tensor
  std::vector<at::Tensor> step_;                ///< by tensor
  std::vector<std::pair<TensorRule, std::vector<size_t>>> groups_;
  int64_t steps_ = 0;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p <- p (1 - lr wd) - lr m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps).
/// Slots exp_avg (m), exp_avg_sq (v). Source: arXiv:1711.05101 algorithm 2.
class AdamW final : public Optimizer {
 public:
  using Options = AdamOptions;
  AdamW(std::vector<TrainedTensor> tensors, Options options);

 private:
  void update(Group& group, double lr) override;
  Options options_;
};

/// As AdamW, with the decay in the gradient, g + wd p, and not in the update. Slots exp_avg, exp_avg_sq. Source: arXiv:1412.6980.
class Adam final : public Optimizer {
 public:
  using Options = AdamOptions;
  Adam(std::vector<TrainedTensor> tensors, Options options);

 private:
  void update(Group& group, double lr) override;
  Options options_;
};

/// b = momentum b + g + wd p; p <- p - lr b. Slot momentum_buffer (b), none where momentum is 0.
class Sgd final : public Optimizer {
 public:
  struct Options {
    double momentum = 0.9;
  };
  Sgd(std::vector<TrainedTensor> tensors, Options options);

 private:
  void update(Group& group, double lr) override;
  Options options_;
};

/// Settings of any of them; each takes its own.
struct OptimizerOptions {
  AdamOptions adam;
  Sgd::Options sgd;
};
/// adam | adamw | sgd. Errors: Error for an unknown name, with the known ones.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, std::vector<TrainedTensor> tensors, const OptimizerOptions& options);
const std::vector<std::string>& optimizer_names();  ///< sorted

}  // namespace spt::protocols
