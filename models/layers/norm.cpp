#include "models/layers/norm.h"

#include <torch/torch.h>

namespace spt::models {
namespace {

constexpr double kNormEps = 1e-5;
constexpr double kNormMomentum = 0.1;

}  // namespace

Norm::Norm(int64_t width, bool has_bias) {
  weight = register_parameter("weight", torch::empty({width}));
  if (has_bias) bias = register_parameter("bias", torch::empty({width}));
}

void Norm::reset_parameters(const Stream&, const std::string&) {
  const torch::NoGradGuard no_grad;
  weight.fill_(1);
  if (bias.defined()) bias.zero_();
}

ParameterRole Norm::role(const std::string&) const { return ParameterRole::kNorm; }

at::Tensor LayerNorm::forward(const at::Tensor& x, const at::Tensor&) {
  return torch::layer_norm(x, {weight.size(0)}, weight, bias, kNormEps);
}

BatchNorm::BatchNorm(int64_t width, bool count_padding) : Norm(width), count_padding_(count_padding) {
  running_mean = register_buffer("running_mean", torch::zeros({width}));
  running_var = register_buffer("running_var", torch::ones({width}));
  num_batches_tracked = register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
}

void BatchNorm::reset_parameters(const Stream& init, const std::string& prefix) {
  Norm::reset_parameters(init, prefix);
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

at::Tensor BatchNorm::normalise(const at::Tensor& rows) {
  return torch::batch_norm(rows, weight, bias, running_mean, running_var, is_training(), kNormMomentum, kNormEps, /*cudnn_enabled=*/true);
}

at::Tensor BatchNorm::forward(const at::Tensor& x, const at::Tensor& real) {
  if (is_training()) num_batches_tracked.add_(1);
  const at::Tensor rows = x.flatten(0, -2);  // (B L, D)
  if (!is_training() || count_padding_ || !real.defined()) return normalise(rows).view_as(x);
  const at::Tensor at = real.flatten().nonzero().squeeze(-1);
  const at::Tensor normalised = normalise(rows.index_select(0, at));
  return torch::zeros({rows.size(0), rows.size(1)}, normalised.options()).index_copy(0, at, normalised).view_as(x);
}

at::Tensor RmsNorm::forward(const at::Tensor& x, const at::Tensor&) { return torch::rms_norm(x, {width_}, weight, kNormEps); }

at::Tensor ScaleNorm::forward(const at::Tensor& x, const at::Tensor&) {
  return torch::rms_norm(x, {width_}, weight.expand(width_), kNormEps);
}

std::shared_ptr<Norm> make_norm(const std::string& kind, int64_t width, bool count_padding) {
  if (kind == "batch") return std::make_shared<BatchNorm>(width, count_padding);
  if (kind == "rms") return std::make_shared<RmsNorm>(width);
  if (kind == "scale") return std::make_shared<ScaleNorm>(width);
  SPT_CHECK(kind == "layer", "no norm is named '{}'", kind);
  return std::make_shared<LayerNorm>(width);
}

}  // namespace spt::models
