#include "models/kernels/s4_kernel.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "harness/base/error.h"
#include "models/kernels/dense_kernel.h"
#include "models/kernels/long_convolution.h"

namespace spt::models {
namespace {

/// Values of 1 / d that are held at once, both parts together.
constexpr int64_t kS4BlockValues = int64_t{1} << 21;

/// What all channels share: half angles pi j / period, j = 0 .. period / 2.
struct S4Nodes {
  at::Tensor cos, sin, phase;  ///< (F), (F), (F) complex
};

S4Nodes s4_nodes(int64_t period, const at::TensorOptions& options) {
  const at::Tensor angle =
      at::arange(period / 2 + 1, options.dtype(torch::kFloat64)) * (std::numbers::pi / static_cast<double>(period));
  const at::ScalarType precision = c10::typeMetaToScalarType(options.dtype());
  const at::Tensor c = angle.cos().to(precision), s = angle.sin().to(precision);
  return {c, s, at::complex(c, s)};
}

/// One block of channels: w (h, M) real and imaginary, top (h, 2 R, M): -2 Re(v w*) for each v, then 2 Re(v).
struct S4Block {
  at::Tensor w_real, w_imag, top;
};

/// 1 / d of each mode and node: real parts, then imaginary ones, (h, M, 2 F).
at::Tensor s4_inverse(const S4Block& b, const S4Nodes& nodes) {
  const int64_t F = nodes.cos.size(0);
  const at::Tensor wc = b.w_imag.unsqueeze(-1) * nodes.cos, s2 = 2 * nodes.sin;
  at::Tensor inverse = at::empty({b.w_imag.size(0), b.w_imag.size(1), 2 * F}, b.w_imag.options());
  at::Tensor real = inverse.narrow(-1, 0, F), imag = inverse.narrow(-1, F, F);
  // |w|^2 c^2 - (2 s)^2, by the difference of squares: near a resonance only this form keeps its digits.
  at::mul_out(real, wc - s2, wc + s2);
  real.addcmul_(b.w_real.square().unsqueeze(-1), nodes.cos.square());
  at::mul_out(imag, b.w_real.unsqueeze(-1), 2 * s2 * nodes.cos);
  const at::Tensor scale = at::addcmul(real.square(), imag, imag).reciprocal_();
  real.mul_(scale);
  imag.mul_(scale);
  return inverse;
}

/// R of each v, (h, R, F) complex.
at::Tensor s4_sums(const at::Tensor& top, const at::Tensor& inverse, const S4Nodes& nodes) {
  const int64_t h = top.size(0), rows = top.size(1) / 2, F = nodes.cos.size(0);
  const at::Tensor sums = at::bmm(top, inverse).view({h, 2, rows, 2, F});
  const auto part = [&](int64_t kind, int64_t which) { return sums.select(1, kind).select(2, which); };
  const at::Tensor s2 = 2 * nodes.sin;
  return at::complex(nodes.cos * part(0, 0) - s2 * part(1, 1), nodes.cos * part(0, 1) + s2 * part(1, 0));
}

/// Rows of the sums: B C~ of each direction, B P*, P C~ of each direction, P P*.
struct S4Sums {
  at::Tensor bc, bp, pc, scale;  ///< scale = 1 / (1 + c R(P P*))

  S4Sums(const at::Tensor& R, const S4Nodes& nodes) {
    const int64_t directions = R.size(1) / 2 - 1;
    bc = R.narrow(1, 0, directions);
    bp = R.narrow(1, directions, 1);
    pc = R.narrow(1, directions + 1, directions);
    scale = (1 + nodes.cos * R.narrow(1, 2 * directions + 1, 1)).reciprocal_();
  }
};

/// Gradient of the sums, given that of K^.
at::Tensor s4_sums_gradient(const at::Tensor& R, const at::Tensor& gradient, const S4Nodes& nodes) {
  const S4Sums sums(R, nodes);
  const at::Tensor correction = nodes.cos * sums.bp * sums.scale;  // K^ = phase (bc - correction pc)
  const at::Tensor g = gradient * nodes.phase.conj();
  const at::Tensor g_correction = -(g * sums.pc.conj()).sum(1, true);
  const at::Tensor common = g_correction * (nodes.cos * sums.scale).conj();
  return at::cat({g, common, -g * correction.conj(), -common * correction.conj()}, 1);
}

struct S4Gradient {
  at::Tensor w_real, w_imag, top;
};

S4Gradient s4_block_gradient(const S4Block& b, const at::Tensor& inverse, const at::Tensor& R, const at::Tensor& gradient,
                             const S4Nodes& nodes) {
  const int64_t h = b.top.size(0), rows = b.top.size(1) / 2, F = nodes.cos.size(0);
  const at::Tensor g = at::view_as_real(s4_sums_gradient(R, gradient, nodes)), g_real = g.select(-1, 0), g_imag = g.select(-1, 1);
  at::Tensor g_sums = at::empty({h, 2, rows, 2, F}, b.top.options());
  const auto set = [&](int64_t kind, int64_t which, const at::Tensor& factor, const at::Tensor& value) {
    at::Tensor at = g_sums.select(1, kind).select(2, which);
    at::mul_out(at, factor, value);
  };
  const at::Tensor s2 = 2 * nodes.sin;
  set(0, 0, nodes.cos, g_real);
  set(0, 1, nodes.cos, g_imag);
  set(1, 0, s2, g_imag);
  set(1, 1, -s2, g_real);
  const at::Tensor g_flat = g_sums.view({h, 2 * rows, 2 * F}), g_inverse = at::bmm(b.top.transpose(1, 2), g_flat);
  // With d = a - i b: (1/d)' = -(1/d)^2 (a' - i b').
  const at::Tensor x = inverse.narrow(-1, 0, F), y = inverse.narrow(-1, F, F), g_x = g_inverse.narrow(-1, 0, F),
                   g_y = g_inverse.narrow(-1, F, F);
  const at::Tensor square = at::addcmul(x.square(), y, y, -1), cross = (x * y).mul_(2);
  const at::Tensor g_a = (square * g_x).addcmul_(cross, g_y), g_b = (cross * g_x).addcmul_(square, g_y, -1);  // negated
  const at::Tensor sum_a = -2 * at::matmul(g_a, nodes.cos.square()), sum_b = -2 * at::matmul(g_b, s2 * nodes.cos);
  return {b.w_real * sum_a + sum_b, b.w_imag * sum_a, at::bmm(g_flat, inverse.transpose(1, 2))};
}

/// Channels in a block: as many as kS4BlockValues lets in.
int64_t s4_block_channels(int64_t pairs, int64_t period) {
  return std::max<int64_t>(1, kS4BlockValues / (pairs * (period + 2)));
}

/// K^ (H, directions, F) of w (H, M) and top (H, 2 R, M). Keeps 1 / d and the sums where there is one block, else computes them again.
class S4Spectrum : public torch::autograd::Function<S4Spectrum> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& w_real, const at::Tensor& w_imag,
                            const at::Tensor& top, int64_t period) {
    const S4Nodes nodes = s4_nodes(period, top.options());
    const int64_t H = top.size(0), step = s4_block_channels(w_real.size(1), period);
    at::Tensor kept_inverse, kept_sums;
    std::vector<at::Tensor> blocks;
    for (int64_t first = 0; first < H; first += step) {
      const S4Block b = block(w_real, w_imag, top, first, step);
      const at::Tensor inverse = s4_inverse(b, nodes), R = s4_sums(b.top, inverse, nodes);
      const S4Sums sums(R, nodes);
      blocks.push_back((sums.bc - nodes.cos * sums.bp * sums.scale * sums.pc) * nodes.phase);
      if (step >= H) kept_inverse = inverse, kept_sums = R;
    }
    context->save_for_backward({w_real, w_imag, top, kept_inverse, kept_sums});
    context->saved_data["period"] = period;
    return at::cat(blocks);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &w_real = saved[0], &w_imag = saved[1], &top = saved[2];
    const int64_t period = context->saved_data["period"].toInt(), H = top.size(0), step = s4_block_channels(w_real.size(1), period);
    const S4Nodes nodes = s4_nodes(period, top.options());
    std::vector<at::Tensor> g_real, g_imag, g_top;
    for (int64_t first = 0; first < H; first += step) {
      const S4Block b = block(w_real, w_imag, top, first, step);
      const at::Tensor inverse = saved[3].defined() ? saved[3] : s4_inverse(b, nodes),
                       R = saved[4].defined() ? saved[4] : s4_sums(b.top, inverse, nodes);
      const S4Gradient g = s4_block_gradient(b, inverse, R, gradients[0].narrow(0, first, b.top.size(0)), nodes);
      g_real.push_back(g.w_real);
      g_imag.push_back(g.w_imag);
      g_top.push_back(g.top);
    }
    return {at::cat(g_real), at::cat(g_imag), at::cat(g_top), at::Tensor()};
  }

 private:
  static S4Block block(const at::Tensor& w_real, const at::Tensor& w_imag, const at::Tensor& top, int64_t first, int64_t step) {
    const int64_t count = std::min(step, top.size(0) - first);
    return {w_real.narrow(0, first, count), w_imag.narrow(0, first, count), top.narrow(0, first, count)};
  }
};

at::Tensor s4_pairs(const at::Tensor& pairs, at::ScalarType precision) {
  return at::view_as_complex(pairs.to(precision));
}

/// Real coordinates sqrt(2) (Re x, Im x) of a conjugate-symmetric state: the dense A (H, N, N) of each channel, times nothing.
at::Tensor s4_real_matrix(const at::Tensor& w_real, const at::Tensor& w_imag, const at::Tensor& P) {
  const at::Tensor diagonal = at::diag_embed(w_real), turn = at::diag_embed(w_imag);
  const at::Tensor rows = at::cat({at::cat({diagonal, -turn}, 2), at::cat({turn, diagonal}, 2)}, 1);
  const at::Tensor p = at::cat({P.select(-1, 0), P.select(-1, 1)}, 1) * std::sqrt(2.0);  // (n_ssm, N)
  return rows - p.unsqueeze(2) * p.unsqueeze(1);
}

}  // namespace

at::Tensor s4_kernel(const S4Parameters& p, int64_t period, int64_t length) {
  SPT_CHECK(length > 0 && length <= period, "a kernel of length {} and period {}", length, period);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = p.log_dt.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const int64_t copies = p.log_dt.size(0) / p.w_imag.size(0), directions = p.C.size(0);
  const at::Tensor dt = p.log_dt.to(precision).exp().unsqueeze(-1);  // (H, 1)
  const at::Tensor w_real = -dt * p.inv_w_real.to(precision).exp().repeat({copies, 1}),
                   w_imag = dt * p.w_imag.to(precision).repeat({copies, 1});  // (H, N/2)
  const at::Tensor B = s4_pairs(p.B, precision)[0].repeat({copies, 1}), P = s4_pairs(p.P, precision)[0].repeat({copies, 1});
  const at::Tensor left = at::stack({dt * B, dt * P}, 1).unsqueeze(2);                                             // (H, 2, 1, N/2)
  const at::Tensor right = at::cat({s4_pairs(p.C, precision), P.conj().unsqueeze(0)}).transpose(0, 1).unsqueeze(1);  // (H, 1, dirs + 1, N/2)
  const at::Tensor v = at::view_as_real((left * right).view({P.size(0), 2 * (directions + 1), P.size(1)}));
  const at::Tensor v_real = v.select(-1, 0), v_imag = v.select(-1, 1);
  const at::Tensor shifted = v_real * w_real.unsqueeze(1) + v_imag * w_imag.unsqueeze(1);
  const at::Tensor spectrum = S4Spectrum::apply(w_real, w_imag, at::cat({-2 * shifted, 2 * v_real}, 1), period);
  return at::fft_irfft(spectrum, period).narrow(-1, 0, length).transpose(0, 1);
}

at::Tensor s4_power_product(const S4Parameters& p, int64_t power) {
  const torch::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t H = p.log_dt.size(0), copies = H / p.w_imag.size(0);
  const auto exact = [](const at::Tensor& t) { return t.detach().to(torch::kFloat64); };
  const at::Tensor A = s4_real_matrix(-exact(p.inv_w_real).exp(), exact(p.w_imag), exact(p.P)[0]).repeat({copies, 1, 1});
  const at::Tensor C = exact(p.C);
  at::Tensor rows = at::cat({C.select(-1, 0), -C.select(-1, 1)}, -1).transpose(0, 1);  // (H, directions, N)
  rows = dense_power_product(rows, dense_bilinear(A, exact(p.log_dt).exp()), power).transpose(0, 1);
  const int64_t half = p.C.size(2);
  return at::stack({rows.narrow(-1, 0, half), -rows.narrow(-1, half, half)}, -1);
}

double s4_kernel_flops(int64_t directions, int64_t channels, int64_t state, int64_t period) {
  const double rows = static_cast<double>(4 * (directions + 1)), nodes = static_cast<double>(2 * (period / 2 + 1));
  return 2 * static_cast<double>(channels) * rows * static_cast<double>(state / 2) * nodes +
         static_cast<double>(channels * directions) * real_fft_flops(period);
}

}  // namespace spt::models
