#include "protocols/batches.h"

#include <torch/torch.h>

#include <limits>

#include "protocols/losses.h"
#include "protocols/masking.h"

namespace spt::protocols {
namespace {

constexpr int64_t kGreyLevels = 256;

/// Pretraining metrics; there are no scores of single examples.
class SequenceMetrics : public Metrics {
 public:
  explicit SequenceMetrics(bool classes) : classes_(classes) {}

  void add(const at::Tensor& output, const Prepared& batch) override {
    if (batch.count == 0) return;
    positions_ += batch.count;
    loss_ += sequence_loss_sum(output.to(torch::kFloat64), batch.target).item<double>();
    if (classes_) correct_ += correct_count(output, batch.target);
    else errors_.add(output, batch.target);
  }

  std::vector<MetricValue> values() const override {
    const double n = positions_ == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(positions_);
    if (classes_) return {{"loss", loss_ / n, positions_}, {"accuracy", static_cast<double>(correct_) / n, positions_}};
    return {{"loss", loss_ / n, positions_}, {"mae", errors_.mae(), errors_.count()}, {"r2", errors_.r2(), errors_.count()}};
  }

  const std::vector<float>& scores() const override { return scores_; }
  const std::vector<int32_t>& predicted() const override { return predicted_; }

 private:
  const bool classes_;
  int64_t positions_ = 0, correct_ = 0;
  double loss_ = 0;
  RegressionSums errors_;
  std::vector<float> scores_;
  std::vector<int32_t> predicted_;
};

}  // namespace

Prepared prepared_from(const tasks::Batch& batch) {
  Prepared prepared;
  prepared.input.tokens = batch.tokens;
  prepared.input.values = batch.values;
  prepared.input.documents = batch.documents;
  prepared.input.decoder_tokens = batch.decoder_tokens;
  prepared.input.decoder_lengths = batch.decoder_lengths;
  prepared.example_ids = batch.example_ids;
  prepared.examples = batch.example_ids.size(0);
  const RowSizes sizes = row_sizes(prepared.input);
  prepared.tokens = batch.lengths.defined() ? batch.lengths.sum().item<int64_t>() : sizes.rows * sizes.length;
  if (prepared.tokens < sizes.rows * sizes.length) prepared.input.lengths = batch.lengths;
  return prepared;
}

RowSizes row_sizes(const models::ModelInput& input) {
  const at::Tensor& x = input.tokens.defined() ? input.tokens : input.values;
  SPT_CHECK(x.defined(), "a batch with neither tokens nor values");
  return {x.size(0), x.size(1)};
}

at::Tensor sequence_target(const tasks::Batch& batch, const at::Tensor& positions, bool levels) {
  if (batch.tokens.defined()) return batch.tokens.flatten().index_select(0, positions);
  const at::Tensor values = batch.values.flatten(0, 1).index_select(0, positions);  // (n, channels)
  return levels ? grey_levels(values).squeeze(-1) : values;
}

bool predicts_classes(const tasks::TaskFacts& facts) {
  if (facts.vocabulary > 0 || facts.value_loss == "levels") return true;
  if (facts.value_loss != "mae") throw Error("{}", unknown_name("value loss", facts.value_loss, std::vector<std::string>{"levels", "mae"}));
  return false;
}

int64_t sequence_outputs(const tasks::TaskFacts& facts) {
  if (facts.vocabulary > 0) return facts.vocabulary;
  if (!predicts_classes(facts)) return facts.channels;
  if (facts.channels != 1) throw Error("grey levels can be predicted for 1 channel, this task has {}", facts.channels);
  return kGreyLevels;
}

at::Tensor sequence_loss_sum(const at::Tensor& output, const at::Tensor& target) {
  return target.scalar_type() == torch::kInt64 ? cross_entropy_sum(output, target) : absolute_error_sum(output, target);
}

std::unique_ptr<Metrics> sequence_metrics(bool classes) { return std::make_unique<SequenceMetrics>(classes); }

}  // namespace spt::protocols
