#include "models/layers/residual.h"

#include <torch/torch.h>

namespace spt::models {

at::Tensor drop(const at::Tensor& x, double probability, bool training) {
  return training && probability > 0 ? torch::dropout(x, probability, true) : x;
}

}  // namespace spt::models
