#include "models/layers/ssm_layer.h"

#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "models/kernels/long_convolution.h"

namespace spt::models {
namespace {

/// An SsmLayer in a residual block; the norm is the last of its parameters.
class SsmBlock : public SsmLayer {
 public:
  SsmBlock(const SsmOptions& o, std::shared_ptr<StateSpace> ssm, double dropout)
      : SsmLayer(std::move(ssm), dropout), residual_{o.norm_position == "pre", dropout, o.tie_dropout} {
    norm_ = register_module("norm", make_norm(o.norm, o.d_model, o.batch_statistics == "all"));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override {
    return residual(x, real, *norm_, residual_, [&](const at::Tensor& u) { return SsmLayer::forward(u, real); });
  }

 private:
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm_;
};

}  // namespace

int64_t SsmOptions::taps(int64_t length) const { return l_max > 0 ? std::min(length, l_max) : length; }

void SsmStateOptions::validate(std::string_view architecture) const {
  if (n_ssm > 0 && d_model % n_ssm != 0)
    throw Error("architecture '{}': n_ssm = {} does not divide d_model = {}", architecture, n_ssm, d_model);
  if (dt_min > dt_max) throw Error("architecture '{}': dt_min = {} is above dt_max = {}", architecture, dt_min, dt_max);
}

void SsmStateOptions::validate_pairs(std::string_view architecture) const {
  if (d_state % 2 != 0) throw Error("architecture '{}': d_state = {} is odd; conjugate pairs need an even number", architecture, d_state);
}

void StateSpace::register_skip() { D_ = register_parameter("D", torch::empty({1, shared_.d_model})); }

void StateSpace::reset_skip(const Stream& init, const std::string& prefix) { draw_normal(D_, init, prefix + "D", 1.0); }

at::Tensor StateSpace::forward(const at::Tensor& u) {
  return torch::addcmul(long_convolution(u, kernel(shared_.taps(u.size(1)))), u, D_.to(u.scalar_type()));
}

SsmLayer::SsmLayer(std::shared_ptr<StateSpace> ssm, double dropout) : dropout_(dropout) {
  ssm_ = register_module("ssm", std::move(ssm));
  const int64_t width = ssm_->shared().d_model;
  output_ = register_module("output", std::make_shared<Linear>(width, 2 * width));
}

at::Tensor SsmLayer::forward(const at::Tensor& u, const at::Tensor& real) {
  const at::Tensor visible = real.defined() ? u * real.unsqueeze(-1).to(u.scalar_type()) : u;
  const at::Tensor y = drop(torch::gelu(ssm_->forward(visible)), dropout_, is_training(), ssm_->shared().tie_dropout);
  return torch::glu(output_->forward(y), -1);
}

std::shared_ptr<Body> make_ssm_body(const SsmOptions& options, double dropout, const std::function<std::shared_ptr<StateSpace>()>& make) {
  std::vector<std::shared_ptr<SequenceLayer>> blocks;
  for (int64_t i = 0; i < options.n_layers; ++i) blocks.push_back(std::make_shared<SsmBlock>(options, make(), dropout));
  return std::make_shared<BlockStack>(options, std::move(blocks));
}

Flops ssm_body_flops(const SsmOptions& o, int64_t length, double kernel_flops) {
  const double D = static_cast<double>(o.d_model), L = static_cast<double>(length), layers = static_cast<double>(o.n_layers),
               transform = D * real_fft_flops(fft_length(length + o.taps(length)));
  return {layers * (kernel_flops + transform), layers * (2 * transform + 2 * L * D * 2 * D)};
}

}  // namespace spt::models
