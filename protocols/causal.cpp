#include <torch/torch.h>

#include <algorithm>

#include "protocols/batches.h"

namespace spt::protocols {
namespace {

/// Each position predicts the next one; the last real position of a row predicts nothing. Needs a causal model
/// (ObjectiveFacts::needs_causal). Source: arXiv:2310.02980 and its code.
class CausalObjective : public Objective {
 public:
  explicit CausalObjective(const tasks::TaskFacts& facts)
      : classes_(predicts_classes(facts)), levels_(facts.vocabulary == 0 && classes_), outputs_(sequence_outputs(facts)) {}

  models::InputSpec input(const tasks::TaskFacts& facts) const override { return {facts.vocabulary, facts.channels, facts.max_length}; }
  models::HeadSpec head(const tasks::TaskFacts&) const override { return {.kind = "sequence", .outputs = outputs_}; }

  Prepared prepare(const tasks::Batch& batch, std::span<const uint64_t>, const Stream&) const override {
    Prepared prepared = prepared_from(batch);
    const RowSizes sizes = row_sizes(prepared.input);
    const at::Tensor lengths = batch.lengths.defined() ? batch.lengths : torch::full({sizes.rows}, sizes.length, torch::kInt64);
    const at::Tensor has_next = torch::arange(sizes.length).unsqueeze(0) < (lengths - 1).unsqueeze(1);  // (rows, L)
    prepared.input.documents = 1;
    prepared.input.positions = has_next.flatten().nonzero().squeeze(-1);
    prepared.target = sequence_target(batch, prepared.input.positions + 1, levels_);
    prepared.count = prepared.input.positions.size(0);
    return prepared;
  }
  using Objective::prepare;

  double expected_positions(int64_t length) const override { return static_cast<double>(std::max<int64_t>(0, length - 1)); }
  at::Tensor loss_sum(const at::Tensor& output, const Prepared& batch) const override { return sequence_loss_sum(output, batch.target); }
  std::unique_ptr<Metrics> metrics() const override { return sequence_metrics(classes_); }
  tasks::MetricFacts selection() const override { return {.name = "loss", .unit = "", .higher_is_better = false}; }

 private:
  const bool classes_, levels_;
  const int64_t outputs_;
};

}  // namespace

std::unique_ptr<Objective> causal_objective(const tasks::TaskFacts& facts) { return std::make_unique<CausalObjective>(facts); }

}  // namespace spt::protocols
