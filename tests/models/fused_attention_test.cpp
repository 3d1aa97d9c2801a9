#include "models/kernels/fused_attention.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <vector>

#include "models/kernels/attention_block.h"

namespace spt::models {
namespace {

struct Pass {
  at::Tensor out, q, k, v;  ///< out and the gradients
};

/// Parts of one projection (B, L, 3, H, d), as the layer makes them: strided views.
std::vector<at::Tensor> some_parts(int64_t B, int64_t L, int64_t H, int64_t d) {
  torch::manual_seed(11);
  std::vector<at::Tensor> parts = torch::randn({B, L, 3, H, d}).unbind(2);
  for (at::Tensor& part : parts) part = part.transpose(1, 2);
  return parts;
}

at::Tensor some_mask(int64_t B, int64_t L) {
  torch::manual_seed(12);
  const at::Tensor real = torch::rand({B, L}) > 0.4;
  real.select(1, L / 2).fill_(true);
  return real;
}

template <class Attention>
Pass run(const Attention& attention, const std::vector<at::Tensor>& parts, at::ScalarType dtype) {
  std::vector<at::Tensor> in;
  for (const at::Tensor& part : parts) in.push_back(part.detach().to(dtype).requires_grad_());
  const at::Tensor out = attention(in[0], in[1], in[2]);
  torch::manual_seed(13);
  const at::Tensor weight = torch::randn({out.size(0), out.size(2), out.size(1), out.size(3)}).transpose(1, 2);
  (out * weight.to(dtype)).sum().backward();
  return {out.detach(), in[0].grad(), in[1].grad(), in[2].grad()};
}

Pass run_fused(const std::vector<at::Tensor>& parts, const at::Tensor& real, bool causal, at::ScalarType dtype = torch::kFloat32) {
  return run([&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) { return fused_attention(q, k, v, real, causal); }, parts,
             dtype);
}

/// Plain formula in float64, differentiated by autograd.
Pass run_formula(const std::vector<at::Tensor>& parts, const at::Tensor& real, bool causal) {
  const auto formula = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    at::Tensor scores = q.matmul(k.transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(-1)));
    at::Tensor hidden = torch::zeros({q.size(0), 1, q.size(2), k.size(2)}, torch::kBool);
    if (real.defined()) hidden = hidden | ~real.view({q.size(0), 1, 1, k.size(2)});
    if (causal) hidden = hidden | torch::ones({q.size(2), k.size(2)}, torch::kBool).triu(1);
    return torch::softmax(scores.masked_fill(hidden, -1e300), -1).masked_fill(hidden, 0).matmul(v);
  };
  return run(formula, parts, torch::kFloat64);
}

double relative(const at::Tensor& got, const at::Tensor& want) {
  const double scale = std::max(want.abs().max().item<double>(), 0.2);  // gradients of a softmax over one key are 0
  return (got.to(torch::kFloat64) - want).abs().max().item<double>() / scale;
}

void expect_close(const Pass& got, const Pass& want, double tolerance, const std::string& what) {
  EXPECT_LT(relative(got.out, want.out), tolerance) << what;
  EXPECT_LT(relative(got.q, want.q), tolerance) << what << ", gradient of q";
  EXPECT_LT(relative(got.k, want.k), tolerance) << what << ", gradient of k";
  EXPECT_LT(relative(got.v, want.v), tolerance) << what << ", gradient of v";
}

bool equal(const Pass& a, const Pass& b) {
  return torch::equal(a.out, b.out) && torch::equal(a.q, b.q) && torch::equal(a.k, b.k) && torch::equal(a.v, b.v);
}

TEST(FusedAttention, MatchesFormulaAndTwinForAnySize) {
  for (const int64_t L : {1, 7, 31, 32, 49, 64, 65, 130, 257})
    for (const int64_t d : {3, 8, 16, 24, 32, 40, 64, 72})
      for (const bool causal : {false, true})
        for (const at::Tensor& real : {at::Tensor(), some_mask(2, L)}) {
          const auto parts = some_parts(2, L, 2, d);
          const std::string what = fmt::format("L={} d={}{}{}", L, d, causal ? " causal" : "", real.defined() ? " masked" : "");
          if (causal && real.defined() && (L < 32 || d % 8 != 0 || d > 64)) continue;  // ATen's NaN where nothing is seen
          const Pass fused = run_fused(parts, real, causal);
          expect_close(fused, run_formula(parts, real, causal), 5e-6, what);
          if (d != 16) continue;
          EXPECT_LT(relative(fused.out, fused_attention_naive(parts[0], parts[1], parts[2], real, causal)), 5e-6) << what;
        }
}

TEST(FusedAttention, MatchesFormulaForLongRows) {
  for (const int64_t d : {16, 64}) {
    const auto parts = some_parts(1, 1024, 2, d);
    expect_close(run_fused(parts, {}, false), run_formula(parts, {}, false), 1e-5, fmt::format("d={}", d));
    expect_close(run_fused(parts, {}, true), run_formula(parts, {}, true), 1e-5, fmt::format("d={} causal", d));
  }
}

TEST(FusedAttention, TakesFewerOrMoreKeysThanQueries) {
  for (const int64_t K : {33, 200}) {
    const auto queries = some_parts(2, 70, 3, 16), keys = some_parts(2, K, 3, 16);
    const std::vector<at::Tensor> parts = {queries[0], keys[1], keys[2]};
    for (const bool causal : {false, true})
      expect_close(run_fused(parts, some_mask(2, K), causal), run_formula(parts, some_mask(2, K), causal), 5e-6, fmt::format("K={}", K));
  }
}

TEST(FusedAttention, IsNotAttentionWithoutTheMask) {  // the comparisons above can fail
  const auto parts = some_parts(2, 64, 2, 16);
  EXPECT_GT(relative(run_fused(parts, {}, false).out, run_formula(parts, {}, true).out), 1e-2);
  EXPECT_GT(relative(run_fused(parts, {}, false).k, run_formula(parts, some_mask(2, 64), false).k), 1e-2);
}

TEST(FusedAttention, KeepsFloat64Exact) {
  const auto parts = some_parts(2, 64, 2, 16);
  expect_close(run_fused(parts, some_mask(2, 64), false, torch::kFloat64), run_formula(parts, some_mask(2, 64), false), 1e-13, "float64");
}

TEST(FusedAttention, GivesZeroWhereNoKeyIsReal) {
  const at::Tensor real = some_mask(3, 70);
  real[1].fill_(false);
  const Pass pass = run_fused(some_parts(3, 70, 2, 16), real, false);
  EXPECT_EQ(pass.out[1].abs().max().item<float>(), 0);
  for (const at::Tensor& x : {pass.out, pass.q, pass.k, pass.v}) EXPECT_TRUE(torch::isfinite(x).all().item<bool>());
  EXPECT_GT(pass.out[0].abs().max().item<float>(), 0);
}

TEST(FusedAttention, HoldsForScoresFarFromZero) {
  for (const double scale : {30.0, 1e4}) {
    auto parts = some_parts(1, 96, 2, 16);
    parts[0] = parts[0] * scale;
    const Pass pass = run_fused(parts, {}, false);
    EXPECT_LT(relative(pass.out, fused_attention_naive(parts[0], parts[1], parts[2], {}, false)), scale * 1e-6) << scale;
    for (const at::Tensor& x : {pass.q, pass.k, pass.v}) EXPECT_TRUE(torch::isfinite(x).all().item<bool>()) << scale;
  }
}

TEST(FusedAttention, PassesOnWhatIsNotANumber) {
  auto parts = some_parts(1, 64, 1, 16);
  parts[0][0][0][5][3] = std::numeric_limits<float>::quiet_NaN();
  const Pass pass = run_fused(parts, {}, false);
  EXPECT_TRUE(torch::isnan(pass.out[0][0][5]).all().item<bool>());
  EXPECT_TRUE(torch::isfinite(pass.out[0][0][6]).all().item<bool>());
  EXPECT_TRUE(torch::isnan(pass.k).any().item<bool>());
}

TEST(FusedAttention, GivesTheSameNumbersForAnyBatchAndThreads) {
  const auto parts = some_parts(5, 100, 4, 16);
  const at::Tensor real = some_mask(5, 100);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Pass one = run_fused(parts, real, false);
  at::set_num_threads(2);
  const Pass two = run_fused(parts, real, false);
  at::set_num_threads(threads);
  EXPECT_TRUE(equal(one, two));
  const auto row = [](const at::Tensor& x) { return x.slice(0, 3, 4); };
  EXPECT_TRUE(torch::equal(row(one.out), fused_attention(row(parts[0]), row(parts[1]), row(parts[2]), row(real), false)));
}

TEST(FusedAttention, TakesAnyStridesAndGradientsWithoutRows) {
  const auto parts = some_parts(2, 64, 2, 16);
  std::vector<at::Tensor> odd;
  for (const at::Tensor& part : parts) odd.push_back(part.transpose(2, 3).contiguous().transpose(2, 3));
  EXPECT_TRUE(equal(run_fused(parts, {}, true), run_fused(odd, {}, true)));
  std::vector<at::Tensor> in;
  for (const at::Tensor& part : parts) in.push_back(part.detach().requires_grad_());
  fused_attention(in[0], in[1], in[2], {}, false).sum().backward();              // an expanded scalar
  EXPECT_LT((in[2].grad().sum() - 2 * 2 * 64 * 16).abs().item<double>(), 1e-2);  // every query's weights add up to 1
}

TEST(FusedAttention, EveryVectorLengthAgrees) {
  const int64_t L = 100, d = 24;
  std::vector<at::Tensor> parts = some_parts(1, L, 1, d);
  for (at::Tensor& part : parts) part = part[0][0].contiguous();  // (L, d)
  std::vector<int32_t> rows;
  for (int32_t j = 0; j < L; ++j)
    if (j % 3 != 1) rows.push_back(j);
  at::Tensor real = torch::zeros({1, L}, torch::kBool);
  for (const int32_t row : rows) real[0][row] = true;
  const auto batch = [](const at::Tensor& x) { return x.view({1, 1, x.size(0), x.size(1)}); };
  const Pass want = run_formula({batch(parts[0]), batch(parts[1]), batch(parts[2])}, real, true);
  torch::manual_seed(13);
  const at::Tensor weight = torch::randn({L, d});
  for (const AttentionKernels& kernels : attention_kernels()) {
    const at::Tensor out = torch::zeros({L, d}), log_sum = torch::zeros({L});
    const std::vector<at::Tensor> gradients = {torch::zeros({L, d}), torch::zeros({L, d}), torch::zeros({L, d})};
    const auto view = [&](const at::Tensor& x) { return HeadRows{x.data_ptr<float>(), d}; };
    const AttentionShape shape{L, static_cast<int64_t>(rows.size()), d, rows.data(), true};
    const AttentionHead head{view(parts[0]), view(parts[1]), view(parts[2]), view(out), log_sum.data_ptr<float>()};
    const at::Tensor scratch = torch::empty({kernels.scratch_size(shape)});
    kernels.forward(shape, head, scratch.data_ptr<float>());
    kernels.backward(shape, head, {view(weight), view(gradients[0]), view(gradients[1]), view(gradients[2])}, scratch.data_ptr<float>());
    expect_close({batch(out), batch(gradients[0]), batch(gradients[1]), batch(gradients[2])}, want, 5e-6, std::string(kernels.name));
  }
}

TEST(FusedAttention, LeavesAutocastToATen) {
  const auto parts = some_parts(1, 64, 2, 16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor y = fused_attention(parts[0], parts[1], parts[2], {}, false);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
}

TEST(FusedAttention, RefusesShapesThatDoNotMatchAndSecondDerivatives) {
  const at::Tensor x = torch::randn({2, 2, 64, 16});
  EXPECT_ANY_THROW(fused_attention(x, x, x.slice(2, 1), {}, false));
  EXPECT_ANY_THROW(fused_attention(x, x, x, torch::ones({2, 63}, torch::kBool), false));
  const at::Tensor leaf = x.clone().requires_grad_();
  const at::Tensor y = fused_attention(leaf, x, x, {}, false).sum();
  EXPECT_ANY_THROW(torch::autograd::grad({y}, {leaf}, {}, true, /*create_graph=*/true));
}

}  // namespace
}  // namespace spt::models
