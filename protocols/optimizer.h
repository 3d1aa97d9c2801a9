#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/architecture.h"

namespace spt::protocols {

/// Learning rate before the schedule, and decoupled weight decay, of one tensor.
struct TensorRule {
  double lr = 0;
  double weight_decay = 0;
  bool operator==(const TensorRule&) const = default;
};

/// From the role of a tensor to its rule. Every rate follows the same schedule.
struct OptimizerRules {
  /// fair (definitions.md 4): decay on matrices only; state space A, B, dt at min(lr, state_lr).
  /// paper (README-ssm.md, "Groups"): everything is decayed except state space A, B, dt, which have rates of their own.
  std::string name = "fair";
  double lr = 1e-3;
  double weight_decay = 0.05;
  double state_lr = 1e-3;                                  ///< fair
  std::optional<double> lr_dt = {}, lr_a = {}, lr_b = {};       ///< paper; absent: lr
  std::optional<double> lr_real = {}, lr_imag = {}, lr_w = {};  ///< paper, of A by parts and of W; absent: lr
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

/// AdamW by LibTorch's fused kernel: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
/// p <- p (1 - lr wd) - lr m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + eps).
///
/// LibTorch's C++ optimizer has no fused path, and hides its state; here the state is plain tensors, so a checkpoint is a copy of them.
/// A parameter without a gradient is updated with a zero one: what a step does never depends on which parts of the model a batch reached.
/// Source: arXiv:1711.05101 algorithm 2; equal to torch::optim::AdamW within 1e-12 in float64 (tests/protocols/optimizer_test.cpp).
class AdamW {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  };
  AdamW(std::vector<TrainedTensor> tensors, Options options);

  void zero_grad();
  /// Scales all gradients so that their global norm is at most `limit` (0: leaves them) and returns the norm from before.
  double clip(double limit);
  /// One update at learning rates rule.lr * factor.
  void step(double factor);
  /// Name of the first tensor with a gradient that is not finite; "" if all are.
  std::string first_bad_gradient() const;

  int64_t steps() const { return steps_; }
  const std::vector<TrainedTensor>& tensors() const { return tensors_; }
  /// "exp_avg.NAME" and "exp_avg_sq.NAME": the optimizer's own tensors, to copy from or into.
  std::vector<std::pair<std::string, at::Tensor>> state() const;
  void set_steps(int64_t steps);  ///< after state() was restored

 private:
  std::vector<at::Tensor> gradients() const;
  std::vector<TrainedTensor> tensors_;
  Options options_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_, step_;  ///< by tensor; the kernel wants its step count as a tensor
  std::vector<std::pair<TensorRule, std::vector<size_t>>> groups_;
  int64_t steps_ = 0;
};

}  // namespace spt::protocols
