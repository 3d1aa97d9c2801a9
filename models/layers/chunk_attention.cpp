#include "models/layers/chunk_attention.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr double kLaplaceMean = 0.707107;
const double kLaplaceScale = 1 / (0.282095 * std::numbers::sqrt2);

/// (erf(t) v + sum of v) / 2, or tril(1 + erf(t)) v / 2 where `causal`, with t = bias + scale q k^T: q, k, v (N, S, ..), bias (S, S).
///
/// Made by hand because the chunks are then taken a few at a time: what has S^2 numbers a chunk stays in the cache, and none of it is kept
/// for the backward pass, which makes t again.
class LaplaceAttention : public torch::autograd::Function<LaplaceAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& bias, double scale, bool causal) {
    context->save_for_backward({q, k, v, bias});
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    at::Tensor y = at::empty({q.size(0), q.size(1), v.size(2)}, v.options());
    Group(q, bias, scale).for_each(q, k, [&](const Part& part, at::Tensor& t) {
      at::Tensor to = part(y);
      if (causal) at::baddbmm_out(to, to, t.erf_().add_(1).tril_(), part(v), 0, 0.5);
      else at::baddbmm_out(to, part(v).sum(1, true), t.erf_(), part(v), 0.5, 0.5);
    });
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &bias = saved[3], g = gradients[0].contiguous();
    const double scale = context->saved_data["scale"].toDouble();
    const bool causal = context->saved_data["causal"].toBool();
    const at::Tensor slope = at::full({}, std::log(1 / std::sqrt(std::numbers::pi)), q.options());  // erf'(t) / 2 = exp(slope - t^2)
    at::Tensor dq = at::empty(q.sizes(), q.options()), dk = at::empty(k.sizes(), k.options()), dv = at::empty(v.sizes(), v.options());
    at::Tensor dbias = at::zeros(bias.sizes(), bias.options());
    const Group group(q, bias, scale);
    at::Tensor scores = at::empty_like(group.buffer());
    group.for_each(q, k, [&](const Part& part, at::Tensor& t) {
      const at::Tensor gradient = part(g);
      at::Tensor d = scores.narrow(0, 0, gradient.size(0)), to_v = part(dv), to_q = part(dq), to_k = part(dk);
      at::erf_out(d, t);
      if (causal) at::baddbmm_out(to_v, to_v, d.add_(1).tril_().transpose(1, 2), gradient, 0, 0.5);
      else at::baddbmm_out(to_v, gradient.sum(1, true), d.transpose(1, 2), gradient, 0.5, 0.5);
      at::bmm_out(d, gradient, part(v).transpose(1, 2));
      at::addcmul_out(t, slope, t, t, -1).exp_();
      d.mul_(t);
      if (causal) d.tril_();
      at::baddbmm_out(to_q, to_q, d, part(k), 0, scale);
      at::baddbmm_out(to_k, to_k, d.transpose(1, 2), part(q), 0, scale);
      dbias.add_(d.sum(0));
    });
    return {dq, dk, dv, dbias, at::Tensor(), at::Tensor()};
  }

 private:
  /// Chunks [first, first + count).
  struct Part {
    int64_t first, count;
    at::Tensor operator()(const at::Tensor& x) const { return x.narrow(0, first, count); }
  };

  /// As many chunks at a time as have kNumbers scores; all of them on another device, where a call costs more than memory.
  class Group {
   public:
    Group(const at::Tensor& q, const at::Tensor& bias, double scale) : bias_(bias), scale_(scale) {
      constexpr int64_t kNumbers = int64_t{1} << 17;
      const int64_t S = q.size(1);
      count_ = q.is_cpu() ? std::clamp(kNumbers / (S * S), int64_t{1}, q.size(0)) : q.size(0);
      buffer_ = at::empty({count_, S, S}, q.options());
    }
    const at::Tensor& buffer() const { return buffer_; }

    /// Calls use(part, t), t in a buffer that the next call has again.
    template <class Use>
    void for_each(const at::Tensor& q, const at::Tensor& k, Use&& use) const {
      for (int64_t first = 0; first < q.size(0); first += count_) {
        const Part part{first, std::min(count_, q.size(0) - first)};
        at::Tensor t = buffer_.narrow(0, 0, part.count);
        at::baddbmm_out(t, bias_, part(q), part(k).transpose(1, 2), 1, scale_);
        use(part, t);
      }
    }

   private:
    at::Tensor bias_, buffer_;
    double scale_;
    int64_t count_;
  };
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
  double scale = kLaplaceScale / static_cast<double>(S);
  at::Tensor per_key = q, seen = v;
  if (causal) {
    const at::Tensor count = at::arange(1, S + 1, q.options().requires_grad(false)).unsqueeze(-1);
    per_key = q / count;
    scale = kLaplaceScale;
  } else if (real.defined()) {
    per_key = q / real.sum(1).clamp_min(1).to(q.scalar_type()).view({-1, 1, 1});
    seen = v * real.unsqueeze(-1).to(v.scalar_type());  // a key of value 0 adds nothing, whatever its weight
    scale = kLaplaceScale;
  }
  return LaplaceAttention::apply(per_key, k, seen, (bias - kLaplaceMean) * kLaplaceScale, scale, causal);
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
