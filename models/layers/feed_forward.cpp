#include "models/layers/feed_forward.h"

#include <torch/torch.h>

#include "models/layers/residual.h"

namespace spt::models {

FeedForward::FeedForward(int64_t width, int64_t inner, double dropout) : dropout_(dropout) {
  up_ = register_module("up", std::make_shared<Linear>(width, inner));
  down_ = register_module("down", std::make_shared<Linear>(inner, width));
}

at::Tensor FeedForward::forward(const at::Tensor& x) {
  return down_->forward(drop(torch::gelu(up_->forward(x)), dropout_, is_training()));
}

}  // namespace spt::models
