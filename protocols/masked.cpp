#include <torch/torch.h>

#include "protocols/batches.h"
#include "protocols/masking.h"

namespace spt::protocols {
namespace {

/// Hidden positions are to be filled in: loss and metrics at them alone. Source: arXiv:2310.02980 and its code.
class MaskedObjective : public Objective {
 public:
  MaskedObjective(double ratio, const tasks::TaskFacts& facts)
      : ratio_(ratio), classes_(predicts_classes(facts)), levels_(facts.vocabulary == 0 && classes_), outputs_(sequence_outputs(facts)) {}

  models::InputSpec input(const tasks::TaskFacts& facts) const override {
    return {facts.vocabulary, facts.channels > 0 ? facts.channels + 1 : 0, facts.max_length};  // values get the indicator channel
  }

  models::HeadSpec head(const tasks::TaskFacts&) const override { return {.kind = "sequence", .outputs = outputs_}; }

  Prepared prepare(const tasks::Batch& batch, std::span<const uint64_t> epochs, const Stream& mask) const override {
    Prepared prepared = prepared_from(batch);
    const RowSizes sizes = row_sizes(prepared.input);
    const at::Tensor hidden = draw_mask(batch.lengths, batch.example_ids, epochs, mask, ratio_, sizes.rows, sizes.length);
    if (batch.tokens.defined()) prepared.input.tokens = hide_tokens(batch.tokens, hidden);
    else prepared.input.values = hide_values(batch.values, hidden);
    prepared.input.documents = 1;  // pairs are independent sequences here
    prepared.input.positions = hidden.flatten().nonzero().squeeze(-1);
    prepared.target = sequence_target(batch, prepared.input.positions, levels_);
    prepared.count = prepared.input.positions.size(0);
    return prepared;
  }
  using Objective::prepare;

  double expected_positions(int64_t length) const override { return ratio_ * static_cast<double>(length); }
  at::Tensor loss_sum(const at::Tensor& output, const Prepared& batch) const override { return sequence_loss_sum(output, batch.target); }
  std::unique_ptr<Metrics> metrics() const override { return sequence_metrics(classes_); }
  tasks::MetricFacts selection() const override { return {.name = "loss", .unit = "", .higher_is_better = false}; }

 private:
  const double ratio_;
  const bool classes_, levels_;
  const int64_t outputs_;
};

}  // namespace

std::unique_ptr<Objective> masked_objective(const MaskedOptions& options, const tasks::TaskFacts& facts) {
  const double ratio = options.ratio > 0 ? options.ratio : facts.mask_ratio;
  if (!(ratio > 0 && ratio <= 1)) throw Error("the mask ratio must be in (0, 1], it is {}", ratio);
  return std::make_unique<MaskedObjective>(ratio, facts);
}

}  // namespace spt::protocols
