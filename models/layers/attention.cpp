#include "models/layers/attention.h"

#include <torch/torch.h>

namespace spt::models {

Attention::Attention(int64_t width, int64_t n_heads, bool causal, bool rotary) : n_heads_(n_heads), causal_(causal) {
  SPT_CHECK(width % n_heads == 0, "width {} in {} heads", width, n_heads);
  if (rotary) rotary_.emplace(width / n_heads);
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
  const at::Tensor qkv = torch::linear(x, weight, bias).view({B, L, 3, n_heads_, D / n_heads_});
  // unbind and split_with_sizes, because their backward passes write each gradient once; those of select and narrow fill all of qkv each.
  std::vector<at::Tensor> parts;
  if (rotary_) {
    const auto qk_and_v = qkv.split_with_sizes({2, 1}, 2);
    parts = rotary_->rotate(qk_and_v[0]).unbind(2);
    parts.push_back(qk_and_v[1].squeeze(2));
  } else {
    parts = qkv.unbind(2);
  }
  for (at::Tensor& part : parts) part = part.transpose(1, 2);  // (B, H, L, d_k)
  std::optional<at::Tensor> mask;
  if (real.defined() && !causal_) mask = real.view({B, 1, 1, L}).expand({B, 1, L, L});
  const at::Tensor y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], mask, /*dropout_p=*/0.0, causal_);
  return output_->forward(y.transpose(1, 2).reshape({B, L, D}));
}

double attention_flops(int64_t width, int64_t length, bool causal) {
  const double D = static_cast<double>(width), L = static_cast<double>(length);
  return 4 * 2 * L * D * D + 2 * 2 * L * L * D * (causal ? 0.5 : 1.0);
}

}  // namespace spt::models
