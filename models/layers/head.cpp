#include "models/layers/head.h"

#include <torch/torch.h>

#include <limits>

namespace spt::models {
namespace {

at::Tensor last_position(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x.select(1, x.size(1) - 1);
  const at::Tensor at = (lengths - 1).clamp_min(0).view({-1, 1, 1}).expand({x.size(0), 1, x.size(2)});
  return x.gather(1, at).squeeze(1);
}

/// Linear(D, outputs) whose parameters carry the head's own name, or a hidden layer before it.
class OutputMap : public Head {
 public:
  OutputMap(int64_t inputs, int64_t inner, int64_t outputs, std::string activation) : activation_(std::move(activation)) {
    if (activation_ == "none") {
      output_ = std::make_shared<Linear>(inputs, outputs);
      register_parameter("weight", output_->weight);
      register_parameter("bias", output_->bias);
    } else {
      hidden_ = register_module("hidden", std::make_shared<Linear>(inputs, inner));
      output_ = register_module("output", std::make_shared<Linear>(inner, outputs));
    }
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    if (hidden_) Layer::reset_parameters(init, prefix);
    else output_->reset_parameters(init, prefix);
  }
  ParameterRole role(const std::string& name) const override { return hidden_ ? Layer::role(name) : output_->role(name); }

 protected:
  at::Tensor apply(const at::Tensor& x) const {
    if (!hidden_) return output_->forward(x);
    const at::Tensor inner = hidden_->forward(x);
    return output_->forward(activation_ == "relu" ? torch::relu(inner) : torch::gelu(inner));
  }

 private:
  std::string activation_;
  std::shared_ptr<Linear> hidden_, output_;
};

class PooledHead : public OutputMap {
 public:
  PooledHead(const HeadSpec& spec, int64_t width) : OutputMap(width, width, spec.outputs, spec.hidden), spec_(spec) {}
  at::Tensor forward(const at::Tensor& features, const ModelInput& input) override {
    return apply(pool_positions(features, spec_.use_lengths ? input.lengths : at::Tensor(), spec_.pool));
  }

 private:
  HeadSpec spec_;
};

/// [a, b, a - b, a b] of the two pooled documents -> Linear(4D, D) -> GELU -> Linear(D, outputs).
class RetrievalHead : public OutputMap {
 public:
  RetrievalHead(const HeadSpec& spec, int64_t width) : OutputMap(4 * width, width, spec.outputs, "gelu"), spec_(spec) {}
  at::Tensor forward(const at::Tensor& features, const ModelInput& input) override {
    SPT_CHECK(features.size(0) % 2 == 0, "a retrieval head needs pairs of rows, not {}", features.size(0));
    const at::Tensor pooled = pool_positions(features, spec_.use_lengths ? input.lengths : at::Tensor(), spec_.pool);
    const auto halves = pooled.chunk(2, 0);
    const at::Tensor &a = halves[0], &b = halves[1];
    return apply(torch::cat({a, b, a - b, a * b}, -1));
  }

 private:
  HeadSpec spec_;
};

/// The rows that input.positions names, (n, D), or all of them.
at::Tensor selected_positions(const at::Tensor& features, const ModelInput& input) {
  return input.positions.defined() ? features.flatten(0, 1).index_select(0, input.positions) : features;
}

class SequenceHead : public OutputMap {
 public:
  SequenceHead(const HeadSpec& spec, int64_t width) : OutputMap(width, width, spec.outputs, "none") {}
  at::Tensor forward(const at::Tensor& features, const ModelInput& input) override { return apply(selected_positions(features, input)); }
};

class IdentityHead : public Head {
 public:
  at::Tensor forward(const at::Tensor& features, const ModelInput& input) override { return selected_positions(features, input); }
};

}  // namespace

at::Tensor pool_positions(const at::Tensor& x, const at::Tensor& lengths, const std::string& kind) {
  if (kind == "first") return x.select(1, 0);
  if (kind == "last") return last_position(x, lengths);
  const at::Tensor real = real_positions(lengths, x.size(1));
  if (kind == "max") {
    if (!real.defined()) return x.amax(1);
    return x.masked_fill(real.logical_not().unsqueeze(-1), -std::numeric_limits<double>::infinity()).amax(1);
  }
  SPT_CHECK(kind == "mean" || kind == "sum", "no pool is named '{}'", kind);
  if (!real.defined()) return kind == "mean" ? x.mean(1) : x.sum(1);
  const at::Tensor sum = x.masked_fill(real.logical_not().unsqueeze(-1), 0).sum(1);
  return kind == "mean" ? sum / lengths.clamp_min(1).unsqueeze(-1).to(sum.scalar_type()) : sum;
}

std::shared_ptr<Head> make_head(const HeadSpec& spec, int64_t width) {
  if (spec.kind == "identity") return std::make_shared<IdentityHead>();
  SPT_CHECK(spec.outputs > 0, "a {} head without outputs", spec.kind);
  if (spec.kind == "sequence") return std::make_shared<SequenceHead>(spec, width);
  if (spec.kind == "retrieval") return std::make_shared<RetrievalHead>(spec, width);
  SPT_CHECK(spec.kind == "pooled", "no head is named '{}'", spec.kind);
  SPT_CHECK(spec.hidden == "none" || spec.hidden == "relu", "no hidden layer is named '{}'", spec.hidden);
  return std::make_shared<PooledHead>(spec, width);
}

double head_flops(const HeadSpec& spec, int64_t width, int64_t length) {
  const double D = static_cast<double>(width), outputs = static_cast<double>(spec.outputs);
  if (spec.kind == "identity") return 0;
  if (spec.kind == "sequence") return 2 * static_cast<double>(length) * spec.share * D * outputs;
  if (spec.kind == "retrieval") return 2 * 4 * D * D + 2 * D * outputs;
  return 2 * D * outputs + (spec.hidden == "relu" ? 2 * D * D : 0);
}

}  // namespace spt::models
