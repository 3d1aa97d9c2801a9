#pragma once

#include <memory>
#include <string>

#include "models/layers/linear.h"

namespace spt::models {

/// Pools features over positions.
///
/// Shapes: x (B, L, D), lengths (B) or undefined -> (B, D). `kind`: mean | max | last | first | sum.
/// Each row is cut to its length first; `last` is then its last real position.
at::Tensor pool_positions(const at::Tensor& x, const at::Tensor& lengths, const std::string& kind);

/// What stands after the body. Features (B, L, D) -> outputs as Model::forward says.
class Head : public Layer {
 public:
  virtual at::Tensor forward(const at::Tensor& features, const ModelInput& input) = 0;
};

/// The parameters of a head are `weight` and `bias`, or `hidden.*` and `output.*` where it has a hidden layer.
std::shared_ptr<Head> make_head(const HeadSpec& spec, int64_t width);

/// Forward FLOPs a row (a pair of rows under a retrieval head) of length L.
double head_flops(const HeadSpec& spec, int64_t width, int64_t length);

}  // namespace spt::models
