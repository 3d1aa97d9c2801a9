#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/kernels/fused_attention.h"

namespace spt::models {

at::Tensor fused_attention_naive(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& real, bool causal) {
  const auto exact = [](const at::Tensor& x) { return x.detach().to(torch::kCPU, torch::kFloat64).contiguous(); };
  const at::Tensor q64 = exact(q), k64 = exact(k), v64 = exact(v), output = torch::zeros_like(q64);
  const at::Tensor seen = real.defined() ? real.to(torch::kCPU).contiguous() : torch::ones({q.size(0), k.size(2)}, torch::kBool);
  const auto query = q64.accessor<double, 4>(), key = k64.accessor<double, 4>(), value = v64.accessor<double, 4>();
  auto y = output.accessor<double, 4>();
  const auto is_real = seen.accessor<bool, 2>();
  const int64_t L = q.size(2), K = k.size(2), d = q.size(3);
  std::vector<double> score(static_cast<size_t>(K));
  for (int64_t b = 0; b < q.size(0); ++b)
    for (int64_t h = 0; h < q.size(1); ++h)
      for (int64_t i = 0; i < L; ++i) {
        double highest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < K; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < d; ++c) dot += query[b][h][i][c] * key[b][h][j][c];
          const bool hidden = !is_real[b][j] || (causal && j > i);
          score[j] = hidden ? -std::numeric_limits<double>::infinity() : dot / std::sqrt(static_cast<double>(d));
          highest = std::max(highest, score[j]);
        }
        if (std::isinf(highest)) continue;
        for (int64_t j = 0; j < K; ++j) sum += std::exp(score[j] - highest);
        for (int64_t j = 0; j < K; ++j)
          for (int64_t c = 0; c < d; ++c) y[b][h][i][c] += std::exp(score[j] - highest) / sum * value[b][h][j][c];
      }
  return output;
}

}  // namespace spt::models
