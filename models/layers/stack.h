#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/layers/linear.h"
#include "models/layers/residual.h"

namespace spt::models {

/// Options of a stack of residual blocks. An architecture's own options derive from it and visit both halves.
struct StackOptions {
  int64_t n_layers = 4;
  int64_t d_model = 64;
  std::string norm = "layer";
  std::string norm_position = "pre";
  std::string batch_statistics = "real";

  template <class Self, class Visitor>
  static void visit_size(Self& self, Visitor&& visit) {
    visit("n_layers", self.n_layers, OptionInfo{.effect = "layers", .min = 1, .max = kMostLayers});
    visit("d_model", self.d_model, OptionInfo{.effect = "width D", .min = 1, .max = kLargestWidth});
  }
  /// `norms`: kinds that the architecture offers.
  template <class Self, class Visitor>
  static void visit_norm(Self& self, Visitor&& visit, std::vector<std::string> norms = {"layer", "batch", "rms"}) {
    visit("norm", self.norm, OptionInfo{.effect = "kind of norm", .choices = std::move(norms)});
    visit("norm_position", self.norm_position,
          OptionInfo{.effect = "norm before (with a final norm) or after each layer", .choices = {"pre", "post"}});
    visit("batch_statistics", self.batch_statistics,
          OptionInfo{.effect = "positions that batch norm counts: real ones, or pads too as published", .choices = {"real", "all"}});
  }
};

/// A layer of a stack.
class SequenceLayer : public Layer {
 public:
  /// x (B, L, D), real (B, L) bool or undefined -> (B, L, D), in which no pad has changed a real position.
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& real) = 0;
};

/// One residual block: pre: x + drop(mix(norm(x))); post: norm(x + drop(mix(x))).
class StackBlock : public SequenceLayer {
 public:
  StackBlock(const StackOptions& options, double dropout);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;

 protected:
  virtual at::Tensor mix(const at::Tensor& u, const at::Tensor& real) = 0;
  double dropout() const { return residual_.dropout; }

 private:
  ResidualOptions residual_;
  std::shared_ptr<Norm> norm_;
};

/// A block whose mix is a linear map over the sequence, then GELU, dropout and a gate: with v = drop(gelu(sequence_map(u))), u zeroed at
/// pads, y = GLU(W v) with W Linear(D, 2D), or, half, y = v sigma(W v) with W Linear(D, D). What stands at pads in y is not zeroed.
class GatedBlock : public StackBlock {
 public:
  GatedBlock(const StackOptions& options, double dropout, bool half_gate = false);

 protected:
  virtual at::Tensor sequence_map(const at::Tensor& u) = 0;
  at::Tensor mix(const at::Tensor& u, const at::Tensor& real) override;

 private:
  bool half_gate_;
  std::shared_ptr<Linear> output_;
};

/// Forward FLOPs of the gate, per position.
double gate_flops(int64_t d_model, bool half_gate);

/// Blocks one after another, and a final norm where the norms stand before. Names: layers.0 ..., final_norm.
class BlockStack : public Body {
 public:
  BlockStack(const StackOptions& options, std::vector<std::shared_ptr<SequenceLayer>> blocks);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& real) override;
  void reset_parameters(const Stream& init, const std::string& prefix) override;
  ParameterRole role(const std::string& name) const override;

 private:
  std::vector<std::shared_ptr<SequenceLayer>> blocks_;
  std::shared_ptr<Norm> final_norm_;
};

/// A stack of n_layers blocks, each Block(options, arguments...).
template <class Block, class Options, class... Arguments>
std::shared_ptr<Body> make_stack(const Options& options, const Arguments&... arguments) {
  std::vector<std::shared_ptr<SequenceLayer>> blocks;
  for (int64_t i = 0; i < options.n_layers; ++i) blocks.push_back(std::make_shared<Block>(options, arguments...));
  return std::make_shared<BlockStack>(options, std::move(blocks));
}

}  // namespace spt::models
