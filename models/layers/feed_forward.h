#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/linear.h"

namespace spt::models {

enum class Activation { kGelu, kSilu };

/// y = down(drop(f(up(x)))), f the exact (erf) GELU or SiLU.
///
/// Shapes: (B, L, D) -> (B, L, D); up (d_ff, D), down (D, d_ff).
class FeedForward : public Layer {
 public:
  FeedForward(int64_t width, int64_t inner, double dropout, Activation activation = Activation::kGelu);
  at::Tensor forward(const at::Tensor& x);

 private:
  double dropout_;
  Activation activation_;
  std::shared_ptr<Linear> up_, down_;
};

/// Forward FLOPs of one row of length L.
double feed_forward_flops(int64_t width, int64_t inner, int64_t length);

/// Presets of a body of attention and feed-forward layers, whose options are n_layers, d_model, n_heads and d_ff.
OptionMap attention_stack_size(int64_t n_layers, int64_t d_model, int64_t n_heads, int64_t d_ff);
std::vector<std::pair<std::string, OptionMap>> attention_stack_sizes();

}  // namespace spt::models
