#pragma once

#include <memory>
#include <string>
#include <vector>

#include "protocols/optimizer.h"
#include "protocols/schedule.h"
#include "tests/reference/case.h"

namespace spt::reference {

/// The published rules with the rates of body.ssm_lr: absent or null is the global rate; a number, all of them; {dt, A, B} or
/// {lambda_real, lambda_imag, W}, each. lambda_real null is lambda_imag, but for the published slip of layer 0, which `fair` repairs.
protocols::OptimizerRules published_rules(const Case& c, const nlohmann::json& body, double lr, double weight_decay);

/// A rate of 0 makes a state space tensor a buffer. Returns the names of those.
std::vector<std::string> freeze_at_rate_zero(models::Model& model, const protocols::OptimizerRules& rules);

/// One row {tensor, lr, weight_decay} of `groups` for each trained tensor of the model.
void compare_groups(Case& c, const nlohmann::json& groups, const std::vector<protocols::TrainedTensor>& tensors);

/// A short run as a case states it.
struct CaseRun {
  std::string loss, optimizer;
  protocols::OptimizerRules rules;
  protocols::OptimizerOptions settings;
  protocols::Schedule schedule;
  int64_t steps = 0;
};

/// Reads loss, steps, lr, weight_decay; optimizer (adamw where absent) with betas, eps, momentum; schedule (constant_warmup where absent)
/// with its own settings. What falls ends with the run unless total_steps says otherwise.
CaseRun read_run(const Case& c, JsonReader& options);

/// What a run gives: loss and factor of the learning rate by step.
struct CaseTrajectory {
  std::vector<double> losses, factors;
};

/// Trains on input.<prefix>batch<i>.{x,y,lengths}, cycled, after freezing at rate 0 and comparing `groups`.
CaseTrajectory train_case_model(Case& c, models::Model& model, const CaseRun& run, const std::string& prefix, const nlohmann::json& groups);

/// output.<prefix><tensor> of every parameter and buffer, by tolerance.gradient.
void compare_tensors(Case& c, const models::Model& model, const std::string& prefix);

}  // namespace spt::reference
