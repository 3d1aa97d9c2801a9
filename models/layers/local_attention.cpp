#include "models/layers/local_attention.h"

#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "harness/base/error.h"

namespace spt::models {
namespace {

/// Consecutive blocks that see as many blocks of full length before and after them: they are one call of the attention.
struct LocalGroup {
  int64_t first = 0, count = 0, before = 0, after = 0;
};

std::vector<LocalGroup> local_groups(int64_t length, const LocalWindow& window) {
  const int64_t blocks = (length + window.window - 1) / window.window;
  const bool ragged = length % window.window != 0;
  std::vector<LocalGroup> groups;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t before = std::min(window.backward, i), after = std::min(window.forward, blocks - 1 - i);
    const bool sees_short_block = ragged && i + after == blocks - 1;
    if (!groups.empty() && !sees_short_block && groups.back().before == before && groups.back().after == after) ++groups.back().count;
    else groups.push_back({i, 1, before, after});
  }
  return groups;
}

/// For each block of the group, the blocks from `before` to `after` of it: (B count, span, ..) from blocks (B, window, ..).
at::Tensor around_blocks(const std::vector<at::Tensor>& blocks, const LocalGroup& group, int64_t before, int64_t after) {
  std::vector<at::Tensor> visible;
  for (int64_t i = group.first; i < group.first + group.count; ++i)
    for (int64_t j = i - before; j <= i + after; ++j) visible.push_back(blocks[static_cast<size_t>(j)]);
  const at::Tensor joined = at::cat(visible, 1);
  std::vector<int64_t> shape = joined.sizes().vec();
  shape[0] *= group.count;
  shape[1] /= group.count;
  return joined.view(shape);
}

/// What the queries of a group see, for the fused attention; undefined: everything.
std::optional<at::Tensor> local_mask(const LocalGroup& group, const std::vector<at::Tensor>& real, int64_t queries, int64_t span,
                                     bool causal, const at::Device& device) {
  if (causal) {
    if (group.before == 0) return {};  // the attention's own causal kind
    return at::ones({queries, span}, at::dtype(at::kBool).device(device)).tril(span - queries);
  }
  if (real.empty()) return {};
  const at::Tensor keys = around_blocks(real, group, group.before, group.after);  // (B count, span)
  const at::Tensor visible = keys.logical_or(keys.any(-1, true).logical_not());
  return visible.view({keys.size(0), 1, 1, span}).expand({keys.size(0), 1, queries, span});
}

}  // namespace

at::Tensor local_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const LocalWindow& window, bool causal,
                           const at::Tensor& real) {
  SPT_CHECK(window.window > 0 && !(causal && window.forward > 0), "window of {} that looks {} blocks forward", window.window,
            window.forward);
  const int64_t B = q.size(0);
  // split, because the gradient of its parts is one cat; that of narrow would fill the whole length for each block.
  const std::vector<at::Tensor> queries = q.split(window.window, 1), keys = k.split(window.window, 1), values = v.split(window.window, 1);
  const std::vector<at::Tensor> reals = real.defined() && !causal ? real.split(window.window, 1) : std::vector<at::Tensor>{};
  std::vector<at::Tensor> outputs;
  for (const LocalGroup& group : local_groups(q.size(1), window)) {
    const at::Tensor q_g = around_blocks(queries, group, 0, 0).transpose(1, 2);  // (B count, H, window, d_k)
    const at::Tensor k_g = around_blocks(keys, group, group.before, group.after).transpose(1, 2);
    const at::Tensor v_g = around_blocks(values, group, group.before, group.after).transpose(1, 2);
    const auto mask = local_mask(group, reals, q_g.size(2), k_g.size(2), causal, q.device());
    const at::Tensor y = at::scaled_dot_product_attention(q_g, k_g, v_g, mask, /*dropout_p=*/0.0, causal && group.before == 0);
    outputs.push_back(y.transpose(1, 2).reshape({B, -1, q.size(2), q.size(3)}));
  }
  return at::cat(outputs, 1);
}

double local_attention_pairs(int64_t length, const LocalWindow& window, bool causal) {
  const auto size_of = [&](int64_t block) { return std::min(window.window, length - block * window.window); };
  double pairs = 0;
  for (const LocalGroup& group : local_groups(length, window)) {
    const int64_t queries = size_of(group.first);
    int64_t span = 0;
    for (int64_t j = group.first - group.before; j <= group.first + group.after; ++j) span += size_of(j);
    const double own = static_cast<double>(queries) * static_cast<double>(queries);
    pairs += static_cast<double>(group.count) * (static_cast<double>(queries) * static_cast<double>(span) - (causal ? own / 2 : 0.0));
  }
  return pairs;
}

}  // namespace spt::models
