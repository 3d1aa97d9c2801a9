#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/options.h"
#include "harness/base/rng.h"

namespace spt::models {

/// Largest n_layers and d_model of any architecture: beyond what a machine can hold, and small enough that sizes fit 64 bits.
inline constexpr double kMostLayers = 1000, kLargestWidth = 65536;

/// What a parameter is, which decides its learning rate and decay (protocols/optimizer.h): never its name.
/// kState*: of a state space. A, B, C, D, dt as in x' = A x + B u, y = C x + D u, step dt; kStateReal and kStateImag are the parts of an A
/// whose parts have rates of their own, kStateW the product of a B and a C (dlr, dss). kAverage: of a damped moving average; published as
/// the rest.
enum class ParameterRole {
  kMatrix,
  kBias,
  kNorm,
  kEmbedding,
  kPosition,
  kStateA,
  kStateB,
  kStateC,
  kStateD,
  kStateDt,
  kStateReal,
  kStateImag,
  kStateW,
  kAverage
};

/// Floating-point operations of a forward pass over a batch of B: fixed + per_example * B. Convention: 2 per multiply-add, causal attention
/// half, real FFT 2.5 n log2 n, complex 5 n log2 n, element-wise 0 (backward costs twice the forward; not in here). B counts rows of the
/// input, except under a retrieval head, where it counts pairs of rows.
struct Flops {
  double fixed = 0;
  double per_example = 0;
  Flops operator+(const Flops& o) const { return {fixed + o.fixed, per_example + o.per_example}; }
};

/// One batch as a network sees it. Exactly one of tokens and values is defined.
struct ModelInput {
  at::Tensor tokens;           ///< (B, L) int64
  at::Tensor values;           ///< (B, L, channels) floating point
  at::Tensor lengths;          ///< (B) int64 on the same device; undefined: every row has length L
  int64_t documents = 1;       ///< 2: rows 0..B/2-1 are first documents, rows B/2..B-1 their partners
  at::Tensor decoder_tokens;   ///< (B, T) int64, encoder-decoder only
  at::Tensor decoder_lengths;  ///< (B) int64, encoder-decoder only
  at::Tensor positions;  ///< int64 indices into B*L: a sequence head is applied there only and answers (n, outputs); undefined: everywhere
};

/// Mask of real positions, (B, L) bool, or undefined where there is no padding to hide.
at::Tensor real_positions(const at::Tensor& lengths, int64_t length);

/// The part between encoder and head: (B, L, D) -> (B, L, D).
class Body : public torch::nn::Module {
 public:
  /// x (B, L, D); real (B, L) bool or undefined (nothing is hidden). Rows are right-padded.
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& real) = 0;
  /// Draws every parameter from init.seed(prefix + name), so a draw depends on nothing but the tensor's full name; buffers are reset too.
  virtual void reset_parameters(const Stream& init, const std::string& prefix) = 0;
  /// Role of the parameter `name` (relative to this module).
  virtual ParameterRole role(const std::string& name) const = 0;
};

struct InputSpec {
  int64_t vocabulary = 0;  ///< V for tokens, 0 for values
  int64_t channels = 0;    ///< values a position, 0 for tokens; a masked objective has added its indicator
  int64_t max_length = 0;  ///< longest row there can be
};

struct HeadSpec {
  std::string kind = "pooled";  ///< pooled | retrieval | sequence | identity
  std::string pool = "mean";    ///< mean | max | last | first | sum (pooled)
  std::string hidden = "none";  ///< none | relu (pooled)
  int64_t outputs = 0;
  bool use_lengths = true;  ///< cut each row to its length before pooling
  double share = 1;         ///< expected share of the positions that a sequence head is applied to; for FLOPs alone
};

struct ModelSpec {
  OptionMap options;  ///< of the architecture, complete
  InputSpec input;
  HeadSpec head;
  double dropout = 0;
  bool mask_padding = true;  ///< false: pads are attended to (`paper`)
};

/// A whole network. Parameter names: encoder.*, body.*, head.* (reference README files).
class Model : public torch::nn::Module {
 public:
  /// Pooled and retrieval heads: (B, outputs) or (B/2, outputs); sequence heads: (B, L, outputs) or (n, outputs) with input.positions.
  virtual at::Tensor forward(const ModelInput& input) = 0;
  virtual void reset_parameters(const Stream& init) = 0;
  virtual ParameterRole role(const std::string& name) const = 0;
  /// Evaluation by decoding (encoder-decoder): token ids (B, <= max_length). Errors: SPT_CHECK for a model that does not decode.
  virtual at::Tensor decode(const ModelInput& input, int64_t max_length);
};

/// A registered architecture: facts and builders.
struct Architecture {
  std::string name;
  int version = 1;      ///< raised by hand when its numbers change
  std::string summary;  ///< one line
  std::string source;   ///< paper and equation
  std::vector<OptionSchema> options;
  OptionMap causal;                                      ///< option values that make it causal; empty: it cannot be
  bool trivial = false;                                  ///< a baseline that every table shows, not a contender
  std::vector<std::pair<std::string, OptionMap>> sizes;  ///< presets "100K".. "10M" of the body, within 10 %
  std::function<void(const OptionMap&)> validate;        ///< conditions between options. Errors: Error
  std::function<int64_t(const OptionMap&)> width;        ///< D of the body
  std::function<std::shared_ptr<Body>(const OptionMap&, const InputSpec&, double dropout)> build_body;
  std::function<Flops(const OptionMap&, int64_t length)> body_flops;  ///< forward, body alone
  /// Set by an architecture that is no encoder + body + head; then build_body and body_flops are empty.
  std::function<std::shared_ptr<Model>(const ModelSpec&)> build_model;
  std::function<Flops(const ModelSpec&, int64_t length)> model_flops;
};

/// Sorted by name. models/registry.cpp is the only list.
const std::vector<Architecture>& architectures();
const Architecture& find_architecture(const std::string& name);  ///< Errors: Error with the known names

/// Encoder + body + head of a registered architecture (models/model.cpp), parameters not yet drawn: call reset_parameters.
std::shared_ptr<Model> build_model(const Architecture& architecture, const ModelSpec& spec);
Flops model_flops(const Architecture& architecture, const ModelSpec& spec, int64_t length);

}  // namespace spt::models
