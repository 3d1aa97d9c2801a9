#include "models/kernels/ring_convolution_cpu.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <complex>

namespace spt::models {
namespace {

using Complex = c10::complex<float>;

// Floats of padded rows in one block: with their spectra and products about 3 MB, near what a core's second level cache holds.
constexpr int64_t kRingBlockFloats = int64_t{1} << 18;
constexpr int64_t kRingTile = 16;
// Sums over the batch have at most this many partial sums, each in order.
constexpr int64_t kRingPartialSums = 8;

/// Blocks of the rows of (B, D): whole examples where a row is short, else some features of one example.
class RingBlocks {
 public:
  RingBlocks(int64_t B, int64_t L, int64_t D, int64_t n) : B_(B), L_(L), D_(D), n_(n) {
    const int64_t rows = std::max<int64_t>(1, kRingBlockFloats / n);
    features_ = std::min(D, rows);
    examples_ = features_ < D ? 1 : std::clamp<int64_t>(rows / D, 1, B);
    slices_ = (D + features_ - 1) / features_;
  }
  int64_t batches() const { return (B_ + examples_ - 1) / examples_; }
  int64_t count() const { return batches() * slices_; }
  int64_t slices() const { return slices_; }
  int64_t first_feature(int64_t block) const { return block % slices_ * features_; }
  int64_t features(int64_t block) const { return std::min(features_, D_ - first_feature(block)); }
  int64_t first_example(int64_t block) const { return block / slices_ * examples_; }
  int64_t examples(int64_t block) const { return std::min(examples_, B_ - first_example(block)); }

  /// The block of x (B, L, D) as rows padded with zeros: (examples, features, n).
  at::Tensor gather(const at::Tensor& x, int64_t block) const;
  /// The inverse, cut to L, into x.
  void scatter(const at::Tensor& rows, const at::Tensor& x, int64_t block) const;

 private:
  int64_t B_, L_, D_, n_, features_, examples_, slices_;
};

/// out[d][t] = in[t][d] for t < L, d < D, by tiles.
void ring_transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride, int64_t L, int64_t D) {
  for (int64_t t0 = 0; t0 < L; t0 += kRingTile) {
    const int64_t t1 = std::min(L, t0 + kRingTile);
    for (int64_t d = 0; d < D; ++d)
      for (int64_t t = t0; t < t1; ++t) out[d * out_stride + t] = in[t * in_stride + d];
  }
}

at::Tensor RingBlocks::gather(const at::Tensor& x, int64_t block) const {
  const int64_t d = features(block);
  at::Tensor rows = at::empty({examples(block), d, n_}, x.options());
  float* out = rows.mutable_data_ptr<float>();
  const float* in = x.const_data_ptr<float>() + first_example(block) * L_ * D_ + first_feature(block);
  for (int64_t b = 0; b < examples(block); ++b, in += L_ * D_, out += d * n_) {
    ring_transpose(in, D_, out, n_, L_, d);
    for (int64_t row = 0; row < d; ++row) std::fill(out + row * n_ + L_, out + (row + 1) * n_, 0.0F);
  }
  return rows;
}

void RingBlocks::scatter(const at::Tensor& rows, const at::Tensor& x, int64_t block) const {
  const int64_t d = features(block);
  const float* in = rows.const_data_ptr<float>();
  float* out = x.mutable_data_ptr<float>() + first_example(block) * L_ * D_ + first_feature(block);
  for (int64_t b = 0; b < examples(block); ++b, out += L_ * D_, in += d * n_) ring_transpose(in, n_, out, D_, d, L_);
}

at::Tensor ring_spectrum(const at::Tensor& rows) { return at::_fft_r2c(rows, {2}, /*normalization=*/0, /*onesided=*/true); }

at::Tensor ring_from_spectrum(const at::Tensor& spectrum, int64_t n) { return at::_fft_c2r(spectrum, {2}, /*normalization=*/2, n); }

/// Calls work(block) for each block of the range, without recording gradients on whatever thread.
template <class Work>
void for_each_ring_block(int64_t count, const Work& work) {
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowAutograd below;
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

/// sum += the examples' conj(a) b, (examples, features, m) each, in order.
void add_correlation(const at::Tensor& a, const at::Tensor& b, Complex* sum) {
  const int64_t m = a.size(1) * a.size(2);
  for (int64_t example = 0; example < a.size(0); ++example) {
    const float *x = reinterpret_cast<const float*>(a.const_data_ptr<Complex>() + example * m),
                *y = reinterpret_cast<const float*>(b.const_data_ptr<Complex>() + example * m);
    float* s = reinterpret_cast<float*>(sum);
    for (int64_t i = 0; i < 2 * m; i += 2) {
      s[i] += x[i] * y[i] + x[i + 1] * y[i + 1];
      s[i + 1] += x[i] * y[i + 1] - x[i + 1] * y[i];
    }
  }
}

}  // namespace

RingConvolutionCpu ring_convolution_cpu(const at::Tensor& u, const at::Tensor& ring_f, int64_t n) {
  const RingBlocks blocks(u.size(0), u.size(1), u.size(2), n);
  RingConvolutionCpu out{at::empty(u.sizes(), u.options()), std::vector<at::Tensor>(static_cast<size_t>(blocks.count()))};
  for_each_ring_block(blocks.count(), [&](int64_t block) {
    at::Tensor& spectrum = out.spectra[static_cast<size_t>(block)] = ring_spectrum(blocks.gather(u, block));
    const at::Tensor product = spectrum * ring_f.narrow(0, blocks.first_feature(block), blocks.features(block));
    blocks.scatter(ring_from_spectrum(product, n), out.y, block);
  });
  return out;
}

RingGradientCpu ring_convolution_gradient_cpu(const at::Tensor& gradient, const at::Tensor& ring_f, const std::vector<at::Tensor>& spectra,
                                              int64_t n, bool want_u, bool want_ring) {
  const int64_t D = gradient.size(2), m = ring_f.size(1);
  const RingBlocks blocks(gradient.size(0), gradient.size(1), D, n);
  const int64_t parts = std::min(kRingPartialSums, blocks.batches());
  const at::Tensor conjugate = at::conj_physical(ring_f), sums = want_ring ? at::zeros({parts, D, m}, ring_f.options()) : at::Tensor();
  RingGradientCpu out;
  if (want_u) out.u = at::empty(gradient.sizes(), gradient.options());
  for_each_ring_block(parts * blocks.slices(), [&](int64_t task) {
    const int64_t part = task / blocks.slices(), slice = task % blocks.slices();
    for (int64_t batch = part * blocks.batches() / parts; batch < (part + 1) * blocks.batches() / parts; ++batch) {
      const int64_t block = batch * blocks.slices() + slice, first = blocks.first_feature(block);
      at::Tensor spectrum = ring_spectrum(blocks.gather(gradient, block));
      if (want_ring)
        add_correlation(spectra[static_cast<size_t>(block)], spectrum, sums.mutable_data_ptr<Complex>() + (part * D + first) * m);
      if (want_u) blocks.scatter(ring_from_spectrum(spectrum.mul_(conjugate.narrow(0, first, blocks.features(block))), n), out.u, block);
    }
  });
  if (want_ring) out.ring_f = sums.sum(0);
  return out;
}

}  // namespace spt::models
