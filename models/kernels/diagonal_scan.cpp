#include "models/kernels/diagonal_scan.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr int64_t kScanWidth = 32;  ///< states that one task carries through the row

/// Rows and states of one task. The pointers stand at the row's first position and the block's first state; the imaginary parts are N on.
template <class T>
struct ScanBlock {
  const T* a;
  int64_t length, N, width;
  bool reverse;
  int64_t position(int64_t step) const { return (reverse ? length - 1 - step : step) * 2 * N; }
};

template <class T>
[[gnu::always_inline]] inline void scan_block(const ScanBlock<T>& block, const T* b, T* x) {
  T a_re[kScanWidth] = {}, a_im[kScanWidth] = {}, x_re[kScanWidth] = {}, x_im[kScanWidth] = {};
  std::copy_n(block.a, block.width, a_re);
  std::copy_n(block.a + block.N, block.width, a_im);
  for (int64_t step = 0; step < block.length; ++step) {
    const T *from_re = b + block.position(step), *from_im = from_re + block.N;
    T *to_re = x + block.position(step), *to_im = to_re + block.N;
#pragma omp simd
    for (int64_t n = 0; n < block.width; ++n) {
      const T re = a_re[n] * x_re[n] - a_im[n] * x_im[n] + from_re[n];
      x_im[n] = a_re[n] * x_im[n] + a_im[n] * x_re[n] + from_im[n];
      x_re[n] = re;
      to_re[n] = x_re[n];
      to_im[n] = x_im[n];
    }
  }
}

/// g_t = y_t + conj(a) g_{t+1}, the gradient of b, and the row's share of the gradient of a, sum_t g_t conj(x_{t-1}); the directions are
/// those of a forward scan, `block.reverse` says how this one walks.
template <class T>
[[gnu::always_inline]] inline void scan_gradient_block(const ScanBlock<T>& block, const T* x, const T* y, T* g, T* gradient_a) {
  T a_re[kScanWidth] = {}, a_im[kScanWidth] = {}, g_re[kScanWidth] = {}, g_im[kScanWidth] = {}, s_re[kScanWidth] = {},
    s_im[kScanWidth] = {};
  std::copy_n(block.a, block.width, a_re);
  std::copy_n(block.a + block.N, block.width, a_im);
  for (int64_t step = 0; step < block.length; ++step) {
    const int64_t here = block.position(step);
    const T *y_re = y + here, *y_im = y_re + block.N;
    T *to_re = g + here, *to_im = to_re + block.N;
#pragma omp simd
    for (int64_t n = 0; n < block.width; ++n) {
      const T re = a_re[n] * g_re[n] + a_im[n] * g_im[n] + y_re[n];
      g_im[n] = a_re[n] * g_im[n] - a_im[n] * g_re[n] + y_im[n];
      g_re[n] = re;
      to_re[n] = g_re[n];
      to_im[n] = g_im[n];
    }
    if (step + 1 == block.length) break;  // no state before the first
    const T *x_re = x + block.position(step + 1), *x_im = x_re + block.N;
#pragma omp simd
    for (int64_t n = 0; n < block.width; ++n) {
      s_re[n] += g_re[n] * x_re[n] + g_im[n] * x_im[n];
      s_im[n] += g_im[n] * x_re[n] - g_re[n] * x_im[n];
    }
  }
  std::copy_n(s_re, block.width, gradient_a);
  std::copy_n(s_im, block.width, gradient_a + block.N);
}

// One clone an instruction set of the two precisions.
#define SPT_SCAN_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
SPT_SCAN_CLONES void run_scan(const ScanBlock<float>& block, const float* b, float* x) { scan_block(block, b, x); }
SPT_SCAN_CLONES void run_scan(const ScanBlock<double>& block, const double* b, double* x) { scan_block(block, b, x); }
SPT_SCAN_CLONES void run_scan_gradient(const ScanBlock<float>& block, const float* x, const float* y, float* g, float* gradient_a) {
  scan_gradient_block(block, x, y, g, gradient_a);
}
SPT_SCAN_CLONES void run_scan_gradient(const ScanBlock<double>& block, const double* x, const double* y, double* g, double* gradient_a) {
  scan_gradient_block(block, x, y, g, gradient_a);
}
#undef SPT_SCAN_CLONES

/// Calls run(row, offset of the row, first state, width) for every row of b (B, L, 2 N) and block of states, in parallel.
template <class Run>
void for_scan_blocks(const at::Tensor& b, Run&& run) {
  const int64_t N = b.size(2) / 2, row_size = b.size(1) * b.size(2), blocks = (N + kScanWidth - 1) / kScanWidth;
  at::parallel_for(0, b.size(0) * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / blocks, first = i % blocks * kScanWidth;
      run(row, row * row_size + first, first, std::min(kScanWidth, N - first));
    }
  });
}

at::Tensor scan_on_cpu(const at::Tensor& a, const at::Tensor& b, bool reverse) {
  at::Tensor x = at::empty_like(b);
  AT_DISPATCH_FLOATING_TYPES(b.scalar_type(), "diagonal_scan", [&] {
    for_scan_blocks(b, [&](int64_t, int64_t offset, int64_t first, int64_t width) {
      const ScanBlock<scalar_t> block{a.const_data_ptr<scalar_t>() + first, b.size(1), a.size(1), width, reverse};
      run_scan(block, b.const_data_ptr<scalar_t>() + offset, x.mutable_data_ptr<scalar_t>() + offset);
    });
  });
  return x;
}

/// Gradients of a and b.
std::pair<at::Tensor, at::Tensor> scan_gradient_on_cpu(const at::Tensor& a, const at::Tensor& x, const at::Tensor& y, bool reverse) {
  at::Tensor g = at::empty_like(x), of_rows = at::empty({x.size(0), 2, a.size(1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "diagonal_scan_backward", [&] {
    for_scan_blocks(x, [&](int64_t row, int64_t offset, int64_t first, int64_t width) {
      const ScanBlock<scalar_t> block{a.const_data_ptr<scalar_t>() + first, x.size(1), a.size(1), width, !reverse};
      run_scan_gradient(block, x.const_data_ptr<scalar_t>() + offset, y.const_data_ptr<scalar_t>() + offset,
                        g.mutable_data_ptr<scalar_t>() + offset, of_rows.mutable_data_ptr<scalar_t>() + row * 2 * a.size(1) + first);
    });
  });
  return {of_rows.sum(0), g};
}

class DiagonalScan : public torch::autograd::Function<DiagonalScan> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& a, const at::Tensor& b, bool reverse) {
    const at::Tensor factors = a.contiguous(), x = scan_on_cpu(factors, b.contiguous(), reverse);
    context->save_for_backward({factors, x});
    context->saved_data["reverse"] = reverse;
    return x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    auto [a, b] = scan_gradient_on_cpu(saved[0], saved[1], gradients[0].contiguous(), context->saved_data["reverse"].toBool());
    return {a, b, at::Tensor()};
  }
};

void check_scan(const at::Tensor& a, const at::Tensor& b) {
  SPT_CHECK(a.dim() == 2 && a.size(0) == 2 && b.dim() == 3, "a has {} dimensions, b {}", a.dim(), b.dim());
  SPT_CHECK(b.size(2) == 2 * a.size(1) && b.size(1) > 0, "b is ({}, {}, {}) for {} states", b.size(0), b.size(1), b.size(2), a.size(1));
}

}  // namespace

at::Tensor diagonal_scan(const at::Tensor& a, const at::Tensor& b, bool reverse) {
  check_scan(a, b);
  RECORD_FUNCTION("spt::diagonal_scan", std::vector<c10::IValue>({a, b}));
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = b.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  if (!b.is_cpu()) return diagonal_scan_by_doubling(a.to(precision), b.to(precision), reverse);
  return DiagonalScan::apply(a.to(precision), b.to(precision), reverse);
}

at::Tensor diagonal_scan_by_doubling(const at::Tensor& a, const at::Tensor& b, bool reverse) {
  check_scan(a, b);
  const int64_t L = b.size(1), N = a.size(1);
  at::Tensor x = at::complex(b.narrow(2, 0, N), b.narrow(2, N, N)), power = at::complex(a[0], a[1]);
  for (int64_t s = 1; s < L; s *= 2, power = power * power) {
    const at::Tensor moved = power * x.narrow(1, reverse ? s : 0, L - s);
    x = reverse ? at::cat({x.narrow(1, 0, L - s) + moved, x.narrow(1, L - s, s)}, 1)
                : at::cat({x.narrow(1, 0, s), x.narrow(1, s, L - s) + moved}, 1);
  }
  return at::cat({at::real(x), at::imag(x)}, 2);
}

double diagonal_scan_flops(int64_t length, int64_t state) { return 8.0 * static_cast<double>(length * state); }

}  // namespace spt::models
