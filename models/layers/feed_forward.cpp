#include "models/layers/feed_forward.h"

#include <torch/torch.h>

#include "models/layers/residual.h"

namespace spt::models {

FeedForward::FeedForward(int64_t width, int64_t inner, double dropout, Activation activation) : dropout_(dropout), activation_(activation) {
  up_ = register_module("up", std::make_shared<Linear>(width, inner));
  down_ = register_module("down", std::make_shared<Linear>(inner, width));
}

at::Tensor FeedForward::forward(const at::Tensor& x) {
  const at::Tensor inner = up_->forward(x);
  return down_->forward(drop(activation_ == Activation::kGelu ? torch::gelu(inner) : torch::silu(inner), dropout_, is_training()));
}

double feed_forward_flops(int64_t width, int64_t inner, int64_t length) { return 2.0 * 2.0 * static_cast<double>(length * width * inner); }

OptionMap attention_stack_size(int64_t n_layers, int64_t d_model, int64_t n_heads, int64_t d_ff) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"n_heads", n_heads}, {"d_ff", d_ff}};
}

std::vector<std::pair<std::string, OptionMap>> attention_stack_sizes() {
  return {{"100K", attention_stack_size(2, 64, 4, 256)},
          {"300K", attention_stack_size(6, 64, 4, 256)},
          {"1M", attention_stack_size(5, 128, 4, 512)},
          {"3M", attention_stack_size(4, 256, 8, 1024)},
          {"10M", attention_stack_size(6, 384, 8, 1408)}};
}

}  // namespace spt::models
