#include "models/layers/stack.h"

#include <torch/torch.h>

namespace spt::models {

StackBlock::StackBlock(const StackOptions& options, double dropout) : residual_{options.norm_position == "pre", dropout} {
  norm_ = register_module("norm", make_norm(options.norm, options.d_model, options.batch_statistics == "all"));
}

at::Tensor StackBlock::forward(const at::Tensor& x, const at::Tensor& real) {
  return residual(x, real, *norm_, residual_, [&](const at::Tensor& u) { return mix(u, real); });
}

GatedBlock::GatedBlock(const StackOptions& options, double dropout, bool half_gate) : StackBlock(options, dropout), half_gate_(half_gate) {
  output_ = register_module("output", std::make_shared<Linear>(options.d_model, half_gate ? options.d_model : 2 * options.d_model));
}

at::Tensor GatedBlock::mix(const at::Tensor& u, const at::Tensor& real) {
  const at::Tensor visible = real.defined() ? u * real.unsqueeze(-1).to(u.scalar_type()) : u;
  const at::Tensor v = drop(torch::gelu(sequence_map(visible)), dropout(), is_training());
  return half_gate_ ? v * torch::sigmoid(output_->forward(v)) : torch::glu(output_->forward(v), -1);
}

double gate_flops(int64_t d_model, bool half_gate) { return 2.0 * static_cast<double>(d_model * d_model) * (half_gate ? 1 : 2); }

BlockStack::BlockStack(const StackOptions& options, std::vector<std::shared_ptr<SequenceLayer>> blocks) : blocks_(std::move(blocks)) {
  torch::nn::ModuleList list;
  for (const auto& block : blocks_) list->push_back(block);
  register_module("layers", list);
  if (options.norm_position == "pre")
    final_norm_ = register_module("final_norm", make_norm(options.norm, options.d_model, options.batch_statistics == "all"));
}

at::Tensor BlockStack::forward(const at::Tensor& x, const at::Tensor& real) {
  at::Tensor h = x;
  for (const auto& block : blocks_) h = block->forward(h, real);
  return final_norm_ ? final_norm_->forward(h, real) : h;
}

void BlockStack::reset_parameters(const Stream& init, const std::string& prefix) { reset_children(*this, init, prefix); }

ParameterRole BlockStack::role(const std::string& name) const { return role_in_children(*this, name); }

}  // namespace spt::models
