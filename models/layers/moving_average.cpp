#include "models/layers/moving_average.h"

#include <torch/torch.h>

#include "models/kernels/ema_kernel.h"

namespace spt::models {

MovingAverage::MovingAverage(int64_t width, int64_t state, bool bidirectional) {
  const int64_t rows = bidirectional ? 2 * width : width;
  delta_ = register_parameter("delta", torch::empty({rows, state, 1}));
  alpha_ = register_parameter("alpha", torch::empty({rows, state, 1}));
  beta_ = register_parameter("beta", torch::empty({rows, state}));
  gamma_ = register_parameter("gamma", torch::empty({rows, state}));
  omega_ = register_parameter("omega", torch::empty({width}));
}

at::Tensor MovingAverage::kernel(int64_t length) const { return ema_kernel({delta_, alpha_, beta_, gamma_}, length); }

at::Tensor MovingAverage::forward(const at::Tensor& x) const { return ema_convolution(x, kernel(x.size(1)), omega_); }

void MovingAverage::reset_parameters(const Stream& init, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  draw_normal(delta_, init, prefix + "delta", 0.2);
  draw_normal(alpha_, init, prefix + "alpha", 0.2);
  draw_normal(beta_, init, prefix + "beta", 0.02);
  beta_.add_(1 - 2 * torch::arange(beta_.size(1), beta_.options()).remainder(2));  // +1, -1, +1, ..
  draw_normal(gamma_, init, prefix + "gamma", 1.0);
  draw_normal(omega_, init, prefix + "omega", 1.0);
}

ParameterRole MovingAverage::role(const std::string&) const { return ParameterRole::kAverage; }

}  // namespace spt::models
