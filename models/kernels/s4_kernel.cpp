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
#include "models/kernels/s4_kernel_cpu.h"

namespace spt::models {
namespace {

/// Values of 1 / d that are held at once, both parts together: what a cache holds, or enough work for a device.
constexpr int64_t kS4BlockValues = int64_t{1} << 18, kS4BlockValuesOfDevice = int64_t{1} << 24;

S4Nodes s4_nodes(int64_t period, const at::TensorOptions& options) {
  const at::Tensor angle = at::arange(period / 2 + 1, options.dtype(torch::kFloat64)) * (std::numbers::pi / static_cast<double>(period));
  const at::ScalarType precision = c10::typeMetaToScalarType(options.dtype());
  return {angle.cos().to(precision), angle.sin().to(precision)};
}

/// One block of channels: w (h, M) real and imaginary, top (h, 2 R, M): -2 Re(v w*) for each v, then 2 Re(v).
struct S4Block {
  at::Tensor w_real, w_imag, top;
};

/// 1 / d of each mode and node: real parts, then imaginary ones, (h, M, 2 F).
at::Tensor s4_inverse(const S4Block& b, const S4Nodes& nodes) {
  if (s4_has_cpu_steps(b.top)) return s4_cpu_inverse(b.w_real, b.w_imag, nodes);
  // |w|^2 c^2 - (2 s)^2, by the difference of squares: near a resonance only this form keeps its digits.
  const at::Tensor wc = b.w_imag.unsqueeze(-1) * nodes.cos, s2 = 2 * nodes.sin;
  const at::Tensor real = ((wc - s2) * (wc + s2)).addcmul_(b.w_real.square().unsqueeze(-1), nodes.cos.square()),
                   imag = b.w_real.unsqueeze(-1) * (2 * s2 * nodes.cos);
  const at::Tensor scale = at::addcmul(real.square(), imag, imag).reciprocal_();
  return at::cat({real * scale, imag * scale}, -1);
}

/// R of each v, (h, R, F) complex, from the products of top and 1 / d.
at::Tensor s4_sums(const at::Tensor& products, const S4Nodes& nodes) {
  const int64_t h = products.size(0), rows = products.size(1) / 2, F = nodes.cos.size(0);
  const at::Tensor sums = products.view({h, 2, rows, 2, F}), s2 = 2 * nodes.sin;
  const auto part = [&](int64_t kind, int64_t which) { return sums.select(1, kind).select(2, which); };
  return at::complex(nodes.cos * part(0, 0) - s2 * part(1, 1), nodes.cos * part(0, 1) + s2 * part(1, 0));
}

/// Rows of the sums: B C~ of each direction, B P*, P C~ of each direction, P P*; K^ = phase (bc - correction pc).
struct S4Sums {
  at::Tensor bc, pc, scale, correction, phase;

  S4Sums(const at::Tensor& R, const S4Nodes& nodes) {
    const int64_t directions = R.size(1) / 2 - 1;
    bc = R.narrow(1, 0, directions);
    pc = R.narrow(1, directions + 1, directions);
    scale = nodes.cos / (1 + nodes.cos * R.narrow(1, 2 * directions + 1, 1));
    correction = R.narrow(1, directions, 1) * scale;
    phase = at::complex(nodes.cos, nodes.sin);
  }
};

/// K^ (h, directions, F) from the products.
at::Tensor s4_combine(const at::Tensor& products, const S4Nodes& nodes) {
  if (s4_has_cpu_steps(products)) return s4_cpu_combine(products, nodes);
  const S4Sums sums(s4_sums(products, nodes), nodes);
  return (sums.bc - sums.correction * sums.pc) * sums.phase;
}

/// Gradient of the products, given that of K^.
at::Tensor s4_combine_gradient(const at::Tensor& products, const at::Tensor& gradient, const S4Nodes& nodes) {
  if (s4_has_cpu_steps(products)) return s4_cpu_combine_gradient(products, gradient, nodes);
  const S4Sums sums(s4_sums(products, nodes), nodes);
  const at::Tensor g = gradient * sums.phase.conj();
  const at::Tensor g_correction = -(g * sums.pc.conj()).sum(1, true), g_bp = g_correction * sums.scale.conj();
  const at::Tensor g_sums = at::cat({g, g_bp, -g * sums.correction.conj(), -g_bp * sums.correction.conj()}, 1);
  const at::Tensor real = at::real(g_sums), imag = at::imag(g_sums), s2 = 2 * nodes.sin;
  return at::cat({at::cat({nodes.cos * real, nodes.cos * imag}, -1), at::cat({s2 * imag, -s2 * real}, -1)}, 1);
}

/// Gradients of w, (2, h, M), given 1 / d and its gradient. With d = a - i b: (1/d)' = -(1/d)^2 (a' - i b').
at::Tensor s4_inverse_gradient(const S4Block& b, const at::Tensor& inverse, const at::Tensor& gradient, const S4Nodes& nodes) {
  if (s4_has_cpu_steps(b.top)) return s4_cpu_inverse_gradient(b.w_real, b.w_imag, inverse, gradient, nodes);
  const auto parts = inverse.chunk(2, -1), g = gradient.chunk(2, -1);
  const at::Tensor square = parts[0].square() - parts[1].square(), cross = 2 * parts[0] * parts[1];
  const at::Tensor sum_a = -at::matmul(square * g[0] + cross * g[1], nodes.cos.square()),
                   sum_b = -at::matmul(cross * g[0] - square * g[1], 4 * nodes.sin * nodes.cos);
  return at::stack({2 * b.w_real * sum_a + sum_b, 2 * b.w_imag * sum_a});
}

/// Channels in a block.
int64_t s4_block_channels(const at::Tensor& top, int64_t period) {
  return std::max<int64_t>(1, (top.is_cpu() ? kS4BlockValues : kS4BlockValuesOfDevice) / (top.size(2) * (period + 2)));
}

/// K^ (H, directions, F) of w (H, M) and top (H, 2 R, M). Keeps its inputs alone: to make 1 / d again costs less than to fetch it.
class S4Spectrum : public torch::autograd::Function<S4Spectrum> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& w_real, const at::Tensor& w_imag,
                            const at::Tensor& top, int64_t period) {
    const S4Nodes nodes = s4_nodes(period, top.options());
    const int64_t H = top.size(0), step = s4_block_channels(top, period);
    std::vector<at::Tensor> blocks;
    for (int64_t first = 0; first < H; first += step) {
      const S4Block b = block(w_real, w_imag, top, first, step);
      blocks.push_back(s4_combine(at::bmm(b.top, s4_inverse(b, nodes)), nodes));
    }
    context->save_for_backward({w_real, w_imag, top});
    context->saved_data["period"] = period;
    return at::cat(blocks);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &w_real = saved[0], &w_imag = saved[1], &top = saved[2];
    const int64_t period = context->saved_data["period"].toInt(), H = top.size(0), step = s4_block_channels(top, period);
    const S4Nodes nodes = s4_nodes(period, top.options());
    std::vector<at::Tensor> g_w, g_top;
    for (int64_t first = 0; first < H; first += step) {
      const S4Block b = block(w_real, w_imag, top, first, step);
      const at::Tensor inverse = s4_inverse(b, nodes);
      const at::Tensor g = s4_combine_gradient(at::bmm(b.top, inverse), gradients[0].narrow(0, first, b.top.size(0)), nodes);
      g_top.push_back(at::bmm(g, inverse.transpose(1, 2)));
      g_w.push_back(s4_inverse_gradient(b, inverse, at::bmm(b.top.transpose(1, 2), g), nodes));
    }
    const at::Tensor w = at::cat(g_w, 1);
    return {w[0], w[1], at::cat(g_top), at::Tensor()};
  }

 private:
  static S4Block block(const at::Tensor& w_real, const at::Tensor& w_imag, const at::Tensor& top, int64_t first, int64_t step) {
    const int64_t count = std::min(step, top.size(0) - first);
    return {w_real.narrow(0, first, count), w_imag.narrow(0, first, count), top.narrow(0, first, count)};
  }
};

at::Tensor s4_pairs(const at::Tensor& pairs, at::ScalarType precision) { return at::view_as_complex(pairs.to(precision)); }

/// The dense A (n_ssm, N, N) in the real coordinates sqrt(2) (Re x, Im x) of a conjugate-symmetric state.
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
  const at::Tensor left = at::stack({dt * B, dt * P}, 1).unsqueeze(2);  // (H, 2, 1, N/2)
  const at::Tensor right =
      at::cat({s4_pairs(p.C, precision), P.conj().unsqueeze(0)}).transpose(0, 1).unsqueeze(1);  // (H, 1, dirs + 1, N/2)
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
