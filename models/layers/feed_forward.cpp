#include "models/layers/feed_forward.h"

#include <torch/torch.h>

#include "models/layers/residual.h"

namespace spt::models {

FeedForward::FeedForward(int64_t width, int64_t inner, double dropout, Activation activation)
    : dropout_(dropout), activation_(activation) {
  up_ = register_module("up", std::make_shared<Linear>(width, inner));
  down_ = register_module("down", std::make_shared<Linear>(inner, width));
}

at::Tensor FeedForward::forward(const at::Tensor& x) {
  const at::Tensor inner = up_->forward(x);
  return down_->forward(drop(activation_ == Activation::kGelu ? torch::gelu(inner) : torch::silu(inner), dropout_, is_training()));
}

}  // namespace spt::models
