#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>

#include "models/architecture.h"
#include "models/kernels/ema_kernel.h"
#include "models/layers/chunk_attention.h"
#include "models/layers/gated_update.h"

namespace spt::models {
namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

at::Tensor normal(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); }

EmaParameters some_averages(int64_t rows, int64_t state) {
  torch::manual_seed(4);
  return {normal({rows, state, 1}), normal({rows, state, 1}), normal({rows, state}), normal({rows, state})};
}

TEST(EmaKernel, MatchesTheRecurrence) {
  for (const int64_t length : {1, 2, 3, 16, 31, 33, 100, 257}) {
    const EmaParameters p = some_averages(5, 3);
    EXPECT_LT(largest_difference(ema_kernel(p, length), ema_kernel_naive(p, length)), 1e-12) << length;
  }
}

TEST(EmaKernel, IsFiniteWhereAnAverageForgetsAtOnce) {
  EmaParameters p = some_averages(2, 2);
  p.delta = torch::full({2, 2, 1}, 60.0, torch::kFloat64).requires_grad_();  // p = 1 and sigmoid(alpha) = 1: q = 0
  p.alpha = torch::full({2, 2, 1}, 60.0, torch::kFloat64);
  const at::Tensor kernel = ema_kernel(p, 20);
  EXPECT_LT(largest_difference(kernel, ema_kernel_naive(p, 20)), 1e-12);
  kernel.sum().backward();
  EXPECT_TRUE(p.delta.grad().isfinite().all().item<bool>());
}

/// Term by term, in both directions.
at::Tensor averages_by_sum(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& omega) {
  const int64_t L = x.size(1), D = x.size(2);
  at::Tensor y = x * omega;
  for (int64_t t = 0; t < L; ++t)
    for (int64_t j = 0; j < L; ++j) {
      if (j <= t) y.select(1, t).add_(kernel.narrow(0, 0, D).select(1, j) * x.select(1, t - j));
      if (kernel.size(0) == 2 * D && t + j < L) y.select(1, t).add_(kernel.narrow(0, D, D).select(1, j) * x.select(1, t + j));
    }
  return y;
}

TEST(EmaConvolution, HasLagZeroInBothDirections) {
  for (const int64_t length : {1, 2, 7, 12})
    for (const int64_t directions : {1, 2}) {
      torch::manual_seed(5);
      const at::Tensor x = normal({2, length, 3}), kernel = normal({3 * directions, length}), omega = normal({3});
      EXPECT_LT(largest_difference(ema_convolution(x, kernel, omega), averages_by_sum(x, kernel, omega)), 1e-12)
          << length << " " << directions;
    }
}

/// Query by query and key by key, as the equations say: the slow twin.
at::Tensor attention_by_pairs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& positions,
                              const at::Tensor& real, const ChunkAttention& o) {
  const int64_t L = q.size(1), S = o.chunk > 0 ? std::min(o.chunk, L) : L, middle = positions.size(0) / 2;
  std::vector<at::Tensor> rows;
  for (int64_t b = 0; b < q.size(0); ++b)
    for (int64_t i = 0; i < L; ++i) {
      std::vector<int64_t> keys;
      for (int64_t j = i / S * S; j < std::min(L, i / S * S + S); ++j)
        if (!(o.causal && j > i) && !(real.defined() && !real[b][j].item<bool>())) keys.push_back(j);
      std::vector<at::Tensor> score;
      const double n = static_cast<double>(keys.size()), divisor = o.laplace ? n : std::sqrt(static_cast<double>(q.size(2)));
      for (const int64_t j : keys) score.push_back((q[b][i] * k[b][j]).sum() / divisor + positions[middle + j - i]);
      at::Tensor row = torch::zeros({v.size(2)}, torch::kFloat64);
      if (!keys.empty()) {
        const at::Tensor s = torch::stack(score);
        const at::Tensor w = o.laplace ? 0.5 * (1 + torch::erf((s - 0.707107) / (0.282095 * std::sqrt(2.0)))) : torch::softmax(s, 0);
        row = torch::mv(v[b].index_select(0, torch::tensor(keys)).t(), w);
      }
      rows.push_back(row);
    }
  return torch::stack(rows).view({q.size(0), L, v.size(2)});
}

/// Outputs at real positions, and gradients of all inputs.
std::vector<at::Tensor> attended(int64_t length, const at::Tensor& real, const ChunkAttention& o, bool twin) {
  torch::manual_seed(6);
  std::vector<at::Tensor> in = {normal({2, length, 3}), normal({2, length, 3}), normal({2, length, 4}), normal({2 * 12 - 1})};
  for (at::Tensor& x : in) x.requires_grad_();
  const at::Tensor y = (twin ? attention_by_pairs : chunk_attention)(in[0], in[1], in[2], in[3], real, o);
  at::Tensor weight = torch::randn_like(y);
  if (real.defined()) weight = weight * real.unsqueeze(-1);
  (y * weight).sum().backward();
  return {(y * weight).detach(), in[0].grad(), in[1].grad(), in[2].grad(), in[3].grad()};
}

TEST(ChunkAttention, EqualsTheEquationsPairByPair) {
  for (const bool laplace : {false, true})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true})
        for (const auto& [length, chunk] : std::vector<std::pair<int64_t, int64_t>>{{12, 0}, {12, 4}, {11, 4}, {3, 4}, {1, 0}, {9, 9}}) {
          const at::Tensor real = padded ? real_positions(torch::tensor({length, (length + 2) / 3}), length) : at::Tensor();
          const ChunkAttention o = {chunk, laplace, causal};
          const auto got = attended(length, real, o, false), want = attended(length, real, o, true);
          for (size_t i = 0; i < got.size(); ++i)
            EXPECT_LT(largest_difference(got[i], want[i]), 1e-12) << "laplace " << laplace << " causal " << causal << " padded " << padded
                                                                  << " L=" << length << " chunk " << chunk << " " << i;
        }
}

TEST(ChunkAttention, ManyChunksAreAsEachOfThemAlone) {  // more than are taken at a time
  constexpr int64_t kChunk = 64, kChunks = 70;
  torch::manual_seed(7);
  std::vector<at::Tensor> in = {normal({1, kChunks * kChunk, 3}), normal({1, kChunks * kChunk, 3}), normal({1, kChunks * kChunk, 4}),
                                normal({2 * kChunk - 1})};
  const at::Tensor weight = normal({1, kChunks * kChunk, 4});
  const auto results = [&](const std::function<at::Tensor()>& attend) {
    for (at::Tensor& x : in) x = x.detach().requires_grad_();
    const at::Tensor y = attend();
    (y * weight).sum().backward();
    return std::vector<at::Tensor>{y.detach(), in[0].grad(), in[1].grad(), in[2].grad(), in[3].grad()};
  };
  for (const bool causal : {false, true}) {
    const ChunkAttention o = {kChunk, true, causal};
    const auto got = results([&] { return chunk_attention(in[0], in[1], in[2], in[3], {}, o); });
    const auto want = results([&] {
      std::vector<at::Tensor> rows;
      for (int64_t i = 0; i < kChunks; ++i) {
        const auto part = [&](const at::Tensor& x) { return x.narrow(1, i * kChunk, kChunk); };
        rows.push_back(chunk_attention(part(in[0]), part(in[1]), part(in[2]), in[3], {}, o));
      }
      return torch::cat(rows, 1);
    });
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(largest_difference(got[i], want[i]), 1e-12) << causal << " " << i;
  }
}

TEST(GatedUpdate, EqualsOneOperationAfterTheOther) {
  torch::manual_seed(8);
  const at::Tensor both = normal({3, 400, 100}), weight = normal({3, 400, 40});  // more rows than are taken at a time
  const auto results = [&](const auto& update) {
    torch::manual_seed(9);
    std::vector<at::Tensor> in = {normal({3, 400, 40}), both.narrow(2, 0, 40), both.narrow(2, 60, 40), normal({3, 400, 40})};
    for (at::Tensor& x : in) x = x.detach().requires_grad_();
    const at::Tensor y = update(in[0], in[1], in[2], in[3]);
    (y * weight).sum().backward();
    return std::vector<at::Tensor>{y.detach(), in[0].grad(), in[1].grad(), in[2].grad(), in[3].grad()};
  };
  const auto got = results(gated_update), want = results(gated_update_naive);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(largest_difference(got[i], want[i]), 1e-13) << i;
}

TEST(ChunkAttention, IsNotThatOfAnotherChunk) {  // the comparison above can fail
  EXPECT_GT(largest_difference(attended(12, {}, {4, true, false}, false)[0], attended(12, {}, {6, true, false}, true)[0]), 1e-3);
}

TEST(ChunkAttention, StaysFiniteWhereAChunkHasNothingButPads) {
  const at::Tensor real = real_positions(torch::tensor({int64_t{1}, int64_t{2}}), 12);
  for (const bool laplace : {false, true})
    for (const at::Tensor& value : attended(12, real, {4, laplace, false}, false)) EXPECT_TRUE(value.isfinite().all().item<bool>());
}

std::string build_message(const OptionMap& given, int64_t max_length) {
  const Architecture& mega = find_architecture("mega");
  try {
    mega.build_body(complete(mega.options, given, "test"), {.vocabulary = 5, .max_length = max_length}, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mega, RefusesRowsThatItsPositionsDoNotReach) {
  const OptionMap whole = {{"chunk", int64_t{0}}, {"max_positions", int64_t{100}}};
  EXPECT_THAT(build_message(whole, 101), testing::HasSubstr("rows of up to 101 positions, but max_positions = 100"));
  EXPECT_EQ(build_message(whole, 100), "no error");
  EXPECT_EQ(build_message({{"max_positions", int64_t{100}}}, 5000), "no error");
  EXPECT_THROW(chunk_attention(normal({1, 9, 2}), normal({1, 9, 2}), normal({1, 9, 2}), normal({15}), {}, {}), Error);
}

TEST(Mega, PredictsTheSameWhateverThePaddingWithShortChunks) {
  const Architecture& mega = find_architecture("mega");
  for (const char* attention : {"softmax", "laplace"})
    for (const char* norm : {"layer", "batch"})
      for (const bool causal : {false, true}) {
        const OptionMap given = {{"n_layers", int64_t{2}},   {"d_model", int64_t{8}},      {"chunk", int64_t{4}},
                                 {"bidirectional", !causal}, {"causal_attention", causal}, {"attention", std::string(attention)},
                                 {"norm", std::string(norm)}};
        const ModelSpec spec{.options = complete(mega.options, given, "test"),
                             .input = {.vocabulary = 20, .max_length = 64},
                             .head = {.kind = "pooled", .outputs = 3}};
        const auto model = build_model(mega, spec);
        model->reset_parameters(Rng(3).stream("init"));
        model->to(torch::kFloat64);  // in training mode: a batch norm's statistics are those of real positions
        ModelInput alone, padded;
        alone.tokens = torch::randint(2, 20, {1, 11}, torch::kInt64);
        alone.lengths = padded.lengths = torch::tensor({int64_t{11}});
        for (const int64_t pads : {1, 5, 30}) {
          padded.tokens = torch::constant_pad_nd(alone.tokens, {0, pads}, 1);
          EXPECT_LT(largest_difference(model->forward(alone), model->forward(padded)), 1e-12)
              << attention << " " << norm << " " << causal << " " << pads;
        }
      }
}

}  // namespace
}  // namespace spt::models
