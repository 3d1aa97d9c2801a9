#include "models/layers/attention.h"

#include <torch/torch.h>

#include "models/kernels/fused_attention.h"

namespace spt::models {

Attention::Attention(const AttentionOptions& options) : options_(options) {
  const int64_t width = options.width;
  SPT_CHECK(width % options.n_heads == 0, "width {} in {} heads", width, options.n_heads);
  if (options.rotary) rotary_.emplace(options.rotary_width > 0 ? options.rotary_width : width / options.n_heads, options.rotary_pairs);
  query_ = register_module("query", std::make_shared<Linear>(width, width));
  key_ = register_module("key", std::make_shared<Linear>(width, width));
  value_ = register_module("value", std::make_shared<Linear>(width, width));
  output_ = register_module("output", std::make_shared<Linear>(width, width));
}

at::Tensor Attention::forward(const at::Tensor& x, const at::Tensor& real) {
  const int64_t B = x.size(0), L = x.size(1), D = x.size(2);
  // One matrix product instead of three; the parameters stay apart because checkpoints and reference cases name them so.
  const at::Tensor weight = torch::cat({query_->weight, key_->weight, value_->weight});
  const at::Tensor bias = torch::cat({query_->bias, key_->bias, value_->bias});
  const at::Tensor qkv = torch::linear(x, weight, bias).view({B, L, 3, options_.n_heads, D / options_.n_heads});
  // unbind and split_with_sizes, because their backward passes write each gradient once; those of select and narrow fill all of qkv each.
  std::vector<at::Tensor> parts;
  if (rotary_) {
    const auto qk_and_v = qkv.split_with_sizes({2, 1}, 2);
    parts = rotary_->rotate(qk_and_v[0]).unbind(2);
    parts.push_back(qk_and_v[1].squeeze(2));
  } else {
    parts = qkv.unbind(2);
  }
  if (options_.local)  // parts are (B, L, H, d_k)
    return output_->forward(local_attention(parts[0], parts[1], parts[2], *options_.local, options_.causal, real).flatten(2));
  for (at::Tensor& part : parts) part = part.transpose(1, 2);  // (B, H, L, d_k)
  const at::Tensor y = fused_attention(parts[0], parts[1], parts[2], options_.causal ? at::Tensor() : real, options_.causal);
  return output_->forward(y.transpose(1, 2).reshape({B, L, D}));
}

void Attention::reset_parameters(const Stream& init, const std::string& prefix) {
  reset_children(*this, init, prefix);
  if (!options_.copies) return;
  const torch::NoGradGuard no_grad;
  for (Linear* projection : {key_.get(), value_.get(), output_.get()}) {
    projection->weight.copy_(query_->weight);
    projection->bias.copy_(query_->bias);
  }
}

double attention_flops(const AttentionOptions& options, int64_t length) {
  const double D = static_cast<double>(options.width), L = static_cast<double>(length);
  const double pairs = options.local ? local_attention_pairs(length, *options.local, options.causal) : L * L * (options.causal ? 0.5 : 1.0);
  return 4 * 2 * L * D * D + 2 * 2 * pairs * D;
}

}  // namespace spt::models
