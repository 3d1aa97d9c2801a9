#include "harness/worker/selftest.h"

#include <torch/torch.h>

#include "harness/base/error.h"
#include "harness/worker/process.h"
#include "models/architecture.h"
#include "models/kernels/selftest.h"

namespace spt::worker {
namespace {

struct Pass {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
};

Pass forward_backward(models::Model& model, const models::ModelInput& input) {
  model.zero_grad();
  model.eval();
  Pass pass{model.forward(input), {}};
  if (pass.output.requires_grad()) pass.output.square().sum().backward();
  for (const at::Tensor& parameter : model.parameters())
    if (parameter.grad().defined()) pass.gradients.push_back(parameter.grad().clone());
  pass.output = pass.output.detach();
  return pass;
}

bool finite(const Pass& pass) {
  bool all = torch::isfinite(pass.output).all().item<bool>();
  for (const at::Tensor& gradient : pass.gradients) all = all && torch::isfinite(gradient).all().item<bool>();
  return all;
}

bool equal(const Pass& a, const Pass& b) {
  bool all = torch::equal(a.output, b.output);
  for (size_t i = 0; i < a.gradients.size(); ++i) all = all && torch::equal(a.gradients[i], b.gradients[i]);
  return all;
}

SelfCheck check_architecture(const models::Architecture& architecture, const at::Device& device) {
  constexpr int64_t kRows = 3, kLength = 24, kVocabulary = 11;
  SelfCheck check{.name = "architecture " + architecture.name, .passed = false, .detail = {}};
  const models::ModelSpec spec{.options = complete(architecture.options, {}, architecture.name),
                               .input = {kVocabulary, 0, kLength},
                               .head = {.kind = "pooled", .outputs = 4},
                               .dropout = 0,
                               .mask_padding = true};
  const Stream init(1, "init");
  torch::manual_seed(init.seed("build"));
  const auto model = models::build_model(architecture, spec);
  model->reset_parameters(init);
  model->to(device);
  torch::manual_seed(7);
  models::ModelInput input;
  input.tokens = torch::randint(4, kVocabulary, {kRows, kLength}, torch::kInt64);
  input.tokens[1].slice(0, 9).fill_(1);
  input.tokens = input.tokens.to(device);
  input.lengths = torch::tensor({kLength, int64_t{9}, kLength}).to(device);
  const Pass first = forward_backward(*model, input), second = forward_backward(*model, input);
  models::ModelInput alone;
  alone.tokens = input.tokens.slice(0, 1, 2).slice(1, 0, 9);
  const double apart = (forward_backward(*model, alone).output[0] - first.output[1]).abs().max().item<double>();
  check.detail = fmt::format("alone and among others differ by {:.1e}", apart);
  if (!finite(first)) check.detail = "a value is not finite";
  else if (!equal(first, second)) check.detail = "two equal passes differ";
  else check.passed = apart < 1e-4;
  return check;
}

}  // namespace

std::vector<SelfCheck> selftest(const std::string& device, int64_t threads) {
  const at::Device on = prepare_device(device, threads);
  std::vector<SelfCheck> checks;
  for (const models::KernelCheck& kernel : models::run_kernel_selftests(on))
    checks.push_back({"kernel " + kernel.name, kernel.ok,
                      fmt::format("differs from its twin by {:.1e}, allowed {:.1e}", kernel.max_error, kernel.tolerance)});
  for (const models::Architecture& architecture : models::architectures()) {
    try {
      checks.push_back(check_architecture(architecture, on));
    } catch (const std::exception& error) {  // the answer of this check
      checks.push_back({"architecture " + architecture.name, false, error.what()});
    }
  }
  return checks;
}

}  // namespace spt::worker
