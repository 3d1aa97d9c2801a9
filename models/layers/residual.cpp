#include "models/layers/residual.h"

#include <torch/torch.h>

namespace spt::models {

at::Tensor drop(const at::Tensor& x, double probability, bool training, bool tied) {
  if (!training || probability <= 0) return x;
  return tied ? x * torch::dropout(torch::ones({x.size(0), 1, x.size(-1)}, x.options()), probability, true)
              : torch::dropout(x, probability, true);
}

}  // namespace spt::models
