#include "models/layers/chunk_attention.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr double kLaplaceMean = 0.707107;
const double kLaplaceScale = 1 / (0.282095 * std::numbers::sqrt2);

/// erf(t), or (1 + erf(t)) below and on the diagonal and 0 above it where `causal`. Made by hand because it keeps one (.., S, S) tensor
/// instead of five, and passes over it five times in both directions instead of twelve.
class ChunkErf : public torch::autograd::Function<ChunkErf> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& t, bool causal) {
    context->save_for_backward({t});
    context->saved_data["causal"] = causal;
    const at::Tensor weight = at::erf(t);
    return causal ? weight.add_(1).tril_() : weight;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const at::Tensor t = context->get_saved_variables()[0];
    // 2 / sqrt(pi) exp(-t^2) = exp(log(2 / sqrt(pi)) - t^2)
    const at::Tensor constant = at::full({}, std::log(2 / std::sqrt(std::numbers::pi)), t.options());
    const at::Tensor gradient = at::addcmul(constant, t, t, -1).exp_().mul_(gradients[0]);
    return {context->saved_data["causal"].toBool() ? gradient.tril_() : gradient, at::Tensor()};
  }
};

/// (S, S): positions[M - 1 + j - i].
at::Tensor distance_bias(const at::Tensor& positions, int64_t size) {
  const int64_t middle = positions.size(0) / 2;
  return positions.narrow(0, middle - size + 1, 2 * size - 1).unfold(0, size, 1).flip(0);
}

/// q, k, v (N, S, ..), real (N, S) or undefined.
at::Tensor laplace_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias, const at::Tensor& real,
                             bool causal) {
  const int64_t S = q.size(1);
  at::Tensor per_key = q * (kLaplaceScale / static_cast<double>(S)), seen = v / 2;
  if (causal) {
    const at::Tensor count = at::arange(1, S + 1, q.options().requires_grad(false)).unsqueeze(-1);
    per_key = q * (kLaplaceScale / count);
  } else if (real.defined()) {
    per_key = q * (kLaplaceScale / real.sum(1).clamp_min(1).to(q.scalar_type())).view({-1, 1, 1});
    seen = seen * real.unsqueeze(-1).to(v.scalar_type());  // a key of value 0 adds nothing, whatever its weight
  }
  const at::Tensor t = at::baddbmm((bias - kLaplaceMean) * kLaplaceScale, per_key, k.transpose(1, 2));
  const at::Tensor weighted = at::bmm(ChunkErf::apply(t, causal), seen);
  return causal ? weighted : weighted + seen.sum(1, true);
}

at::Tensor softmax_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias, const at::Tensor& real,
                             bool causal) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  const int64_t S = q.size(1);
  at::Tensor start = bias;
  if (causal) {
    start = bias.masked_fill(at::ones({S, S}, q.options().dtype(at::kBool)).triu(1), kHidden);
  } else if (real.defined()) {
    const at::Tensor hidden = real.logical_not().logical_and(real.any(1, true));  // (N, S)
    start = bias.unsqueeze(0).masked_fill(hidden.unsqueeze(1), kHidden);
  }
  const at::Tensor score = at::baddbmm(start, q / std::sqrt(static_cast<double>(q.size(2))), k.transpose(1, 2));
  return at::bmm(at::softmax(score, -1), v);
}

int64_t chunk_length(int64_t length, const ChunkAttention& options) { return options.chunk > 0 ? std::min(options.chunk, length) : length; }

}  // namespace

at::Tensor chunk_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& positions,
                           const at::Tensor& real, const ChunkAttention& options) {
  const int64_t B = q.size(0), L = q.size(1), S = chunk_length(L, options), M = (positions.size(0) + 1) / 2;
  if (S > M) throw Error("attention over {} positions, but its bias knows distances below {}: raise max_positions or set chunk", S, M);
  const int64_t extra = (S - L % S) % S;
  const auto in_chunks = [&](const at::Tensor& x) {
    return (extra > 0 ? at::constant_pad_nd(x, {0, 0, 0, extra}) : x).reshape({-1, S, x.size(2)});
  };
  at::Tensor visible = real;
  if (extra > 0 && !real.defined()) visible = at::ones({B, L}, q.options().dtype(at::kBool));
  if (visible.defined()) visible = at::constant_pad_nd(visible, {0, extra}).view({-1, S});
  const at::Tensor bias = distance_bias(positions, S);
  const auto attention = options.laplace ? laplace_attention : softmax_attention;
  const at::Tensor y = attention(in_chunks(q), in_chunks(k), in_chunks(v), bias, visible, options.causal);
  return y.view({B, L + extra, v.size(2)}).narrow(1, 0, L);
}

double chunk_attention_flops(int64_t key_width, int64_t value_width, int64_t length, const ChunkAttention& options) {
  const int64_t S = chunk_length(length, options), padded = (length + S - 1) / S * S;
  return 2 * static_cast<double>(padded * S * (key_width + value_width)) * (options.causal ? 0.5 : 1.0);
}

}  // namespace spt::models
