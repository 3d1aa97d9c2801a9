#include "models/layers/linear.h"

#include <torch/torch.h>

#include "models/architecture.h"

namespace spt::models {
namespace {

/// Features of a row that a linear model reads: how often each token occurs, divided by the length; or the raw values, position by
/// position, zero-padded to max_length.
int64_t linear_features(const InputSpec& input) { return input.vocabulary > 0 ? input.vocabulary : input.max_length * input.channels; }

/// y = W features + b; a retrieval head reads the features of both documents.
///
/// Random: none. All parameters start at 0: the problem is convex, so the start decides nothing that matters.
class LinearModel : public Model {
 public:
  explicit LinearModel(const ModelSpec& spec) : input_(spec.input), pairs_(spec.head.kind == "retrieval") {
    head_ = register_module("head", std::make_shared<Linear>(linear_features(spec.input) * (pairs_ ? 2 : 1), spec.head.outputs));
  }
  at::Tensor forward(const ModelInput& input) override {
    at::Tensor features = input_.vocabulary > 0 ? token_frequencies(input) : flat_values(input);
    if (pairs_) features = torch::cat(features.chunk(2, 0), -1);
    return head_->forward(features);
  }
  void reset_parameters(const Stream&) override {
    const torch::NoGradGuard no_grad;
    head_->weight.zero_();
    head_->bias.zero_();
  }
  ParameterRole role(const std::string& name) const override { return role_in_children(*this, name); }

 private:
  at::Tensor token_frequencies(const ModelInput& input) const {
    const int64_t B = input.tokens.size(0), L = input.tokens.size(1);
    const at::Tensor real = real_positions(input.lengths, L);
    at::Tensor ones = torch::ones({B, L}, head_->weight.options().requires_grad(false));
    if (real.defined()) ones = ones * real.to(ones.scalar_type());
    const at::Tensor counts = torch::zeros({B, input_.vocabulary}, ones.options()).scatter_add(1, input.tokens, ones);
    return counts / ones.sum(1, true).clamp_min(1);
  }
  at::Tensor flat_values(const ModelInput& input) const {
    const int64_t L = input.values.size(1);
    SPT_CHECK(L <= input_.max_length, "a row of length {}, the longest is {}", L, input_.max_length);
    at::Tensor values = input.values.to(head_->weight.scalar_type());
    const at::Tensor real = real_positions(input.lengths, L);
    if (real.defined()) values = values * real.unsqueeze(-1).to(values.scalar_type());
    return torch::constant_pad_nd(values, {0, 0, 0, input_.max_length - L}).flatten(1);
  }

  InputSpec input_;
  bool pairs_;
  std::shared_ptr<Linear> head_;
};

void check_linear(const ModelSpec& spec) {
  if (spec.head.kind != "pooled" && spec.head.kind != "retrieval")
    throw Error("architecture 'linear' has no output a position (head '{}'): it cannot be pretrained", spec.head.kind);
  if (spec.input.vocabulary == 0 && spec.input.max_length <= 0)
    throw Error("architecture 'linear' needs the longest length of the task's rows");
}

}  // namespace

Architecture linear() {
  return {
      .name = "linear",
      .version = 1,
      .summary = "Linear model on token frequencies or raw values: what needs no sequence model",
      .source = "",
      .options = {},
      .causal = {},
      .trivial = true,
      .sizes = {},
      .validate = [](const OptionMap& options) { complete({}, options, "architecture 'linear'"); },
      .width = [](const OptionMap&) -> int64_t { return 0; },
      .build_body = {},
      .body_flops = {},
      .build_model = [](const ModelSpec& spec) -> std::shared_ptr<Model> {
        check_linear(spec);
        return std::make_shared<LinearModel>(spec);
      },
      .model_flops = [](const ModelSpec& spec, int64_t) -> Flops {
        const double features = static_cast<double>(linear_features(spec.input) * (spec.head.kind == "retrieval" ? 2 : 1));
        return {0, 2 * features * static_cast<double>(spec.head.outputs)};
      },
  };
}

}  // namespace spt::models
