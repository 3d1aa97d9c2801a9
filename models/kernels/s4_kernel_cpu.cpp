#include "models/kernels/s4_kernel_cpu.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "harness/base/error.h"

// Binaries move between hosts, so the loops are compiled for several instruction sets and the running one is chosen at load time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SPT_S4_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SPT_S4_CLONES
#endif

namespace spt::models {
namespace {

/// Tables of one call: c, 2 s, c^2, 4 s c, s.
struct S4Tables {
  const float *c, *s2, *cc, *s4c, *s;
  int64_t F;
};

/// One mode: 1 / ((w_i c - 2 s)(w_i c + 2 s) + w_r^2 c^2 - i w_r 4 s c).
SPT_S4_CLONES void s4_cpu_inverse_row(float w_real, float w_imag, const S4Tables& t, float* out_real, float* out_imag) {
  const float *c = t.c, *s2 = t.s2, *cc = t.cc, *s4c = t.s4c;
  const float decay = w_real * w_real;
  const int64_t F = t.F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    const float wc = w_imag * c[j];
    const float a = (wc - s2[j]) * (wc + s2[j]) + decay * cc[j], b = w_real * s4c[j];
    const float scale = 1.0F / (a * a + b * b);
    out_real[j] = a * scale;
    out_imag[j] = b * scale;
  }
}

/// Sums over the nodes of -c^2 and -4 s c times the derivatives by a and b of d = a - i b.
SPT_S4_CLONES void s4_cpu_inverse_row_gradient(const S4Tables& t, const float* x, const float* y, const float* g_x, const float* g_y,
                                               float* sums) {
  const float *cc = t.cc, *s4c = t.s4c;
  const int64_t F = t.F;
  float sum_a = 0, sum_b = 0;
#pragma omp simd reduction(+ : sum_a, sum_b)
  for (int64_t j = 0; j < F; ++j) {
    const float square = x[j] * x[j] - y[j] * y[j], cross = 2 * x[j] * y[j];
    sum_a += cc[j] * (square * g_x[j] + cross * g_y[j]);
    sum_b += s4c[j] * (cross * g_x[j] - square * g_y[j]);
  }
  sums[0] = -sum_a;
  sums[1] = -sum_b;
}

/// R of one row of one channel, from its four products: Re v and shifted, times the real and the imaginary part of 1 / d.
SPT_S4_CLONES void s4_cpu_row_sums(const S4Tables& t, const float* shifted, const float* plain, float* real, float* imag) {
  const float *c = t.c, *s2 = t.s2;
  const int64_t F = t.F;
  const float *shifted_imag = shifted + F, *plain_imag = plain + F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    real[j] = c[j] * shifted[j] - s2[j] * plain_imag[j];
    imag[j] = c[j] * shifted_imag[j] + s2[j] * plain[j];
  }
}

/// The gradient of those four products.
SPT_S4_CLONES void s4_cpu_row_sums_gradient(const S4Tables& t, const float* real, const float* imag, float* shifted, float* plain) {
  const float *c = t.c, *s2 = t.s2;
  const int64_t F = t.F;
  float *shifted_imag = shifted + F, *plain_imag = plain + F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    shifted[j] = c[j] * real[j];
    shifted_imag[j] = c[j] * imag[j];
    plain[j] = s2[j] * imag[j];
    plain_imag[j] = -s2[j] * real[j];
  }
}

/// scale = c / (1 + c R(P P*)) and correction = R(B P*) scale, complex in two arrays each.
SPT_S4_CLONES void s4_cpu_correction(const S4Tables& t, const float* bp, const float* pp, float* scale, float* correction) {
  const float* c = t.c;
  const int64_t F = t.F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    const float real = 1 + c[j] * pp[j], imag = c[j] * pp[F + j], size = c[j] / (real * real + imag * imag);
    const float scale_real = real * size, scale_imag = -imag * size;
    scale[j] = scale_real;
    scale[F + j] = scale_imag;
    correction[j] = bp[j] * scale_real - bp[F + j] * scale_imag;
    correction[F + j] = bp[j] * scale_imag + bp[F + j] * scale_real;
  }
}

/// K^ = (c + i s) (bc - correction pc), interleaved.
SPT_S4_CLONES void s4_cpu_output(const S4Tables& t, const float* bc, const float* pc, const float* correction, float* out) {
  const float *c = t.c, *s = t.s;
  const int64_t F = t.F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    const float real = bc[j] - (correction[j] * pc[j] - correction[F + j] * pc[F + j]),
                imag = bc[F + j] - (correction[j] * pc[F + j] + correction[F + j] * pc[j]);
    out[2 * j] = c[j] * real - s[j] * imag;
    out[2 * j + 1] = c[j] * imag + s[j] * real;
  }
}

/// Gradients of bc and pc of one direction; that of the correction is added to.
SPT_S4_CLONES void s4_cpu_output_gradient(const S4Tables& t, const float* gradient, const float* pc, const float* correction, float* g_bc,
                                          float* g_pc, float* g_correction) {
  const float *c = t.c, *s = t.s;
  const int64_t F = t.F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    const float real = c[j] * gradient[2 * j] + s[j] * gradient[2 * j + 1], imag = c[j] * gradient[2 * j + 1] - s[j] * gradient[2 * j];
    g_bc[j] = real;
    g_bc[F + j] = imag;
    g_pc[j] = -(real * correction[j] + imag * correction[F + j]);
    g_pc[F + j] = -(imag * correction[j] - real * correction[F + j]);
    g_correction[j] -= real * pc[j] + imag * pc[F + j];
    g_correction[F + j] -= imag * pc[j] - real * pc[F + j];
  }
}

/// Gradients of R(B P*) and R(P P*).
SPT_S4_CLONES void s4_cpu_correction_gradient(const S4Tables& t, const float* g_correction, const float* scale, const float* correction,
                                              float* g_bp, float* g_pp) {
  const int64_t F = t.F;
#pragma omp simd
  for (int64_t j = 0; j < F; ++j) {
    const float real = g_correction[j] * scale[j] + g_correction[F + j] * scale[F + j],
                imag = g_correction[F + j] * scale[j] - g_correction[j] * scale[F + j];
    g_bp[j] = real;
    g_bp[F + j] = imag;
    g_pp[j] = -(real * correction[j] + imag * correction[F + j]);
    g_pp[F + j] = -(imag * correction[j] - real * correction[F + j]);
  }
}

/// The nodes' tables and what keeps them alive.
struct S4OwnTables {
  at::Tensor c, s2, cc, s4c, s;

  explicit S4OwnTables(const S4Nodes& n)
      : c(n.cos.contiguous()), s2(2 * n.sin), cc(n.cos.square()), s4c(2 * s2 * n.cos), s(n.sin.contiguous()) {}
  S4Tables tables() const {
    return {c.const_data_ptr<float>(),   s2.const_data_ptr<float>(), cc.const_data_ptr<float>(),
            s4c.const_data_ptr<float>(), s.const_data_ptr<float>(),  c.size(0)};
  }
};

/// The sums R of one channel in scratch, rows of (real F, imaginary F), and the correction they make.
class S4Channel {
 public:
  S4Channel(const S4Tables& t, int64_t directions) : t_(t), d_(directions), R_(rows() * 2 * t.F), scale_(2 * t.F), correction_(2 * t.F) {}
  int64_t rows() const { return 2 * (d_ + 1); }
  float* row(int64_t r) { return R_.data() + r * 2 * t_.F; }
  const float* bc(int64_t c) { return row(c); }
  const float* pc(int64_t c) { return row(d_ + 1 + c); }
  const float* scale() const { return scale_.data(); }
  const float* correction() const { return correction_.data(); }
  void read(const float* products) {
    for (int64_t r = 0; r < rows(); ++r)
      s4_cpu_row_sums(t_, products + r * 2 * t_.F, products + (rows() + r) * 2 * t_.F, row(r), row(r) + t_.F);
    s4_cpu_correction(t_, row(d_), row(2 * d_ + 1), scale_.data(), correction_.data());
  }

 private:
  S4Tables t_;
  int64_t d_;
  std::vector<float> R_, scale_, correction_;
};

}  // namespace

bool s4_has_cpu_steps(const at::Tensor& like) { return like.is_cpu() && like.scalar_type() == torch::kFloat32; }

at::Tensor s4_cpu_inverse(const at::Tensor& w_real, const at::Tensor& w_imag, const S4Nodes& nodes) {
  const S4OwnTables own(nodes);
  const S4Tables t = own.tables();
  const at::Tensor real = w_real.contiguous(), imag = w_imag.contiguous();
  at::Tensor inverse = at::empty({real.size(0), real.size(1), 2 * t.F}, real.options());
  const float *r = real.const_data_ptr<float>(), *i = imag.const_data_ptr<float>();
  auto* out = inverse.mutable_data_ptr<float>();
  at::parallel_for(0, real.numel(), 16, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) s4_cpu_inverse_row(r[k], i[k], t, out + k * 2 * t.F, out + (k * 2 + 1) * t.F);
  });
  return inverse;
}

at::Tensor s4_cpu_combine(const at::Tensor& products, const S4Nodes& nodes) {
  SPT_CHECK(products.is_contiguous(), "products that are not contiguous");
  const S4OwnTables own(nodes);
  const S4Tables t = own.tables();
  const int64_t h = products.size(0), directions = products.size(1) / 4 - 1, stride = products.stride(0);
  at::Tensor result = at::empty({h, directions, t.F, 2}, products.options());
  const auto* in = products.const_data_ptr<float>();
  auto* out = result.mutable_data_ptr<float>();
  at::parallel_for(0, h, 1, [&](int64_t first, int64_t last) {
    S4Channel channel(t, directions);
    for (int64_t k = first; k < last; ++k) {
      channel.read(in + k * stride);
      for (int64_t c = 0; c < directions; ++c)
        s4_cpu_output(t, channel.bc(c), channel.pc(c), channel.correction(), out + (k * directions + c) * 2 * t.F);
    }
  });
  return at::view_as_complex(result);
}

at::Tensor s4_cpu_combine_gradient(const at::Tensor& products, const at::Tensor& gradient, const S4Nodes& nodes) {
  SPT_CHECK(products.is_contiguous(), "products that are not contiguous");
  const S4OwnTables own(nodes);
  const S4Tables t = own.tables();
  const int64_t h = products.size(0), directions = products.size(1) / 4 - 1, stride = products.stride(0);
  const at::Tensor given = at::view_as_real(gradient.resolve_conj()).contiguous();
  at::Tensor result = at::empty_like(products);
  const auto *in = products.const_data_ptr<float>(), *g = given.const_data_ptr<float>();
  auto* out = result.mutable_data_ptr<float>();
  at::parallel_for(0, h, 1, [&](int64_t first, int64_t last) {
    S4Channel channel(t, directions);
    const int64_t rows = channel.rows(), wide = 2 * t.F;
    std::vector<float> g_correction(wide), g_rows(rows * wide);
    for (int64_t k = first; k < last; ++k) {
      channel.read(in + k * stride);
      std::fill(g_correction.begin(), g_correction.end(), 0.0F);
      const auto g_row = [&](int64_t r) { return g_rows.data() + r * wide; };
      for (int64_t c = 0; c < directions; ++c)
        s4_cpu_output_gradient(t, g + (k * directions + c) * wide, channel.pc(c), channel.correction(), g_row(c), g_row(directions + 1 + c),
                               g_correction.data());
      s4_cpu_correction_gradient(t, g_correction.data(), channel.scale(), channel.correction(), g_row(directions),
                                 g_row(2 * directions + 1));
      for (int64_t r = 0; r < rows; ++r)
        s4_cpu_row_sums_gradient(t, g_row(r), g_row(r) + t.F, out + k * stride + r * wide, out + k * stride + (rows + r) * wide);
    }
  });
  return result;
}

at::Tensor s4_cpu_inverse_gradient(const at::Tensor& w_real, const at::Tensor& w_imag, const at::Tensor& inverse,
                                   const at::Tensor& gradient, const S4Nodes& nodes) {
  SPT_CHECK(inverse.is_contiguous() && gradient.is_contiguous(), "1 / d or its gradient is not contiguous");
  const S4OwnTables own(nodes);
  const S4Tables t = own.tables();
  const at::Tensor real = w_real.contiguous(), imag = w_imag.contiguous();
  at::Tensor result = at::empty({2, real.size(0), real.size(1)}, real.options());
  const float *r = real.const_data_ptr<float>(), *i = imag.const_data_ptr<float>(), *x = inverse.const_data_ptr<float>(),
              *g = gradient.const_data_ptr<float>();
  auto* out = result.mutable_data_ptr<float>();
  const int64_t modes = real.numel();
  at::parallel_for(0, modes, 16, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      float sums[2];
      const int64_t at_real = k * 2 * t.F, at_imag = at_real + t.F;
      s4_cpu_inverse_row_gradient(t, x + at_real, x + at_imag, g + at_real, g + at_imag, sums);
      out[k] = 2 * r[k] * sums[0] + sums[1];
      out[modes + k] = 2 * i[k] * sums[0];
    }
  });
  return result;
}

}  // namespace spt::models
