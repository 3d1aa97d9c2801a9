#pragma once

#include <memory>
#include <optional>

#include "models/layers/linear.h"
#include "models/layers/local_attention.h"
#include "models/layers/positions.h"

namespace spt::models {

struct AttentionOptions {
  int64_t width = 0;
  int64_t n_heads = 1;  ///< must divide width
  bool causal = false;
  bool rotary = false;
  int64_t rotary_width = 0;  ///< features of a head that turn, the first ones; 0: all
  RotaryPairs rotary_pairs = RotaryPairs::kNeighbours;
  std::optional<LocalWindow> local = {};  ///< absent: every position is visible
  bool copies = false;                    ///< the four projections start as one draw, which is what the published code does
};

/// Multi-head attention: softmax(q k^T / sqrt(d_k)) v over all positions or those of a LocalWindow; the earlier ones and itself where
/// `causal`. Rotary angles are those of absolute positions.
///
/// Shapes: x (B, L, D) -> (B, L, D); real (B, L) bool or undefined. query, key, value, output: Linear(D, D) each.
/// Pads are hidden as keys. Causal attention needs no mask for that: rows are right-padded, so no real query sees a pad, and what
/// stands at pads is read by no head and no loss.
/// Random: each Linear's own draw; all that of `query` where `copies`.
/// Source: arXiv:1706.03762 section 3.2.2; copies: published code src/models/sequence/mha.py, clones.
class Attention : public Layer {
 public:
  explicit Attention(const AttentionOptions& options);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real);
  void reset_parameters(const Stream& init, const std::string& prefix) override;

 private:
  AttentionOptions options_;
  std::optional<Rotary> rotary_;
  std::shared_ptr<Linear> query_, key_, value_, output_;
};

/// Forward FLOPs of one row of length L.
double attention_flops(const AttentionOptions& options, int64_t length);

}  // namespace spt::models
