#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/norm.h"

namespace spt::models {

/// Dropout from the global generator (the trainer seeds it before each step): of single elements, or, `tied`, of whole features of a row,
/// x (B, L, D), by one mask (B, 1, D) for all its positions.
at::Tensor drop(const at::Tensor& x, double probability, bool training, bool tied = false);

/// Where a block's norm stands: pre: x + drop(f(norm(x))); post: norm(x + drop(f(x))).
struct ResidualOptions {
  bool pre = true;
  double dropout = 0;
  bool tied = false;  ///< as drop() has it
};

template <class Block>
at::Tensor residual(const at::Tensor& x, const at::Tensor& real, Norm& norm, const ResidualOptions& options, Block&& block) {
  if (options.pre) return x + drop(block(norm.forward(x, real)), options.dropout, norm.is_training(), options.tied);
  return norm.forward(x + drop(block(x), options.dropout, norm.is_training(), options.tied), real);
}

}  // namespace spt::models
