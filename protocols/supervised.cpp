#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "protocols/batches.h"
#include "protocols/losses.h"
#include "protocols/masking.h"

namespace spt::protocols {
namespace {

/// What the three kinds of supervised metrics share.
class ScoredMetrics : public Metrics {
 public:
  const std::vector<float>& scores() const override { return scores_; }
  const std::vector<int32_t>& predicted() const override { return predicted_; }

 protected:
  void add_scores(const at::Tensor& scores) {
    const at::Tensor flat = scores.to(torch::kCPU, torch::kFloat32).contiguous();
    scores_.insert(scores_.end(), flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel());
  }
  void add_predicted(const at::Tensor& classes) {
    const at::Tensor flat = classes.to(torch::kCPU, torch::kInt32).contiguous();
    predicted_.insert(predicted_.end(), flat.const_data_ptr<int32_t>(), flat.const_data_ptr<int32_t>() + flat.numel());
  }
  static double mean_of(double sum, int64_t n) { return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(n); }

 private:
  std::vector<float> scores_;
  std::vector<int32_t> predicted_;
};

class ClassificationMetrics : public ScoredMetrics {
 public:
  void add(const at::Tensor& output, const Prepared& batch) override {
    examples_ += batch.examples;
    loss_ += cross_entropy_sum(output.to(torch::kFloat64), batch.target).item<double>();
    const at::Tensor predicted = output.argmax(-1);
    const at::Tensor correct = predicted.eq(batch.target);
    correct_ += correct.sum().item<int64_t>();
    add_scores(correct);
    add_predicted(predicted);
  }
  std::vector<MetricValue> values() const override {
    return {{"loss", mean_of(loss_, examples_), examples_}, {"accuracy", mean_of(static_cast<double>(correct_), examples_), examples_}};
  }

 private:
  int64_t examples_ = 0, correct_ = 0;
  double loss_ = 0;
};

class RegressionMetrics : public ScoredMetrics {
 public:
  void add(const at::Tensor& output, const Prepared& batch) override {
    examples_ += batch.examples;
    sums_.add(output, batch.target);
    add_scores((output.to(torch::kFloat64) - batch.target.to(torch::kFloat64)).square().mean(-1));
  }
  std::vector<MetricValue> values() const override {
    return {
        {"loss", sums_.mse(), examples_}, {"mse", sums_.mse(), examples_}, {"mae", sums_.mae(), examples_}, {"r2", sums_.r2(), examples_}};
  }

 private:
  int64_t examples_ = 0;
  RegressionSums sums_;
};

/// output (B, T, V); the loss at t < decoder_lengths alone.
at::Tensor answer_loss_sum(const at::Tensor& output, const Prepared& batch) {
  const at::Tensor& lengths = batch.input.decoder_lengths;
  const at::Tensor at =
      (torch::arange(output.size(1), lengths.options()).unsqueeze(0) < lengths.unsqueeze(1)).flatten().nonzero().squeeze(-1);
  return cross_entropy_sum(output.flatten(0, 1).index_select(0, at), batch.target.flatten().index_select(0, at));
}

/// Cross-entropy of the target tokens from forward(), and equality of whole answers from decode().
class SequenceToSequenceMetrics : public ScoredMetrics {
 public:
  void add(const at::Tensor& output, const Prepared& batch) override {
    if (output.scalar_type() == torch::kInt64) return add_answers(output, batch);
    tokens_ += batch.count;
    loss_ += answer_loss_sum(output.to(torch::kFloat64), batch).item<double>();
  }
  std::vector<MetricValue> values() const override {
    return {{"loss", mean_of(loss_, tokens_), tokens_}, {"exact_match", mean_of(static_cast<double>(exact_), answers_), answers_}};
  }

 private:
  void add_answers(const at::Tensor& ids, const Prepared& batch) {
    const at::Tensor& wanted = batch.input.decoder_tokens;
    const int64_t width = std::max(ids.size(1), wanted.size(1));
    const auto widened = [&](const at::Tensor& t) { return torch::constant_pad_nd(t, {0, width - t.size(1)}, kPadToken); };
    const at::Tensor equal = widened(ids).eq(widened(wanted)).all(1);
    answers_ += batch.examples;
    exact_ += equal.sum().item<int64_t>();
    add_scores(equal);
    add_predicted(torch::full({batch.examples}, -1, torch::kInt64));
  }
  int64_t tokens_ = 0, answers_ = 0, exact_ = 0;
  double loss_ = 0;
};

enum class Kind { kClassification, kRegression, kSequenceToSequence };

Kind kind_of(const tasks::TaskFacts& facts) {
  static const std::vector<std::string> kKinds = {"classification", "regression", "sequence-to-sequence"};
  const auto found = std::find(kKinds.begin(), kKinds.end(), facts.kind);
  if (found == kKinds.end()) throw Error("{}", unknown_name("kind of task", facts.kind, kKinds));
  return static_cast<Kind>(found - kKinds.begin());
}

std::unique_ptr<Metrics> metrics_of(Kind kind) {
  switch (kind) {
    case Kind::kRegression:
      return std::make_unique<RegressionMetrics>();
    case Kind::kSequenceToSequence:
      return std::make_unique<SequenceToSequenceMetrics>();
    default:
      return std::make_unique<ClassificationMetrics>();
  }
}

/// The task itself. Classification: cross-entropy; regression: squared error, mean over targets; sequence-to-sequence: cross-entropy of
/// every real target token, where the model's output at t, given the target before t, predicts token t; TaskFacts::outputs is the longest
/// answer.
class SupervisedObjective : public Objective {
 public:
  SupervisedObjective(const tasks::TaskFacts& facts, HeadChoice head) : kind_(kind_of(facts)), head_(std::move(head)) {
    if (facts.metrics.empty()) throw Error("the task names no metric");
    primary_ = facts.metrics.front();
    if (kind_ == Kind::kSequenceToSequence) decode_length_ = facts.outputs;
    std::vector<std::string> known;
    for (const MetricValue& value : metrics_of(kind_)->values()) known.push_back(value.name);
    if (std::find(known.begin(), known.end(), primary_.name) == known.end())
      throw Error("{}", unknown_name("metric", primary_.name, known));
  }

  models::InputSpec input(const tasks::TaskFacts& facts) const override { return {facts.vocabulary, facts.channels, facts.max_length}; }

  models::HeadSpec head(const tasks::TaskFacts& facts) const override {
    if (kind_ == Kind::kSequenceToSequence) return {.kind = "sequence", .outputs = facts.vocabulary};
    return {.kind = facts.documents == 2 ? "retrieval" : "pooled", .pool = head_.pool, .hidden = head_.hidden, .outputs = facts.outputs};
  }

  Prepared prepare(const tasks::Batch& batch, std::span<const uint64_t>, const Stream&) const override {
    Prepared prepared = prepared_from(batch);
    if (kind_ == Kind::kSequenceToSequence) {
      prepared.target = batch.decoder_tokens;
      prepared.count = batch.decoder_lengths.sum().item<int64_t>();
    } else {
      prepared.target = kind_ == Kind::kRegression ? batch.targets : batch.labels;
      prepared.count = prepared.examples;
    }
    return prepared;
  }
  using Objective::prepare;

  double expected_positions(int64_t) const override { return -1; }

  at::Tensor loss_sum(const at::Tensor& output, const Prepared& batch) const override {
    if (kind_ == Kind::kRegression) return squared_error_sum(output, batch.target);
    if (kind_ == Kind::kSequenceToSequence) return answer_loss_sum(output, batch);
    return cross_entropy_sum(output, batch.target);
  }

  std::unique_ptr<Metrics> metrics() const override { return metrics_of(kind_); }
  tasks::MetricFacts selection() const override { return primary_; }
  int64_t decode_length() const override { return decode_length_; }

 private:
  const Kind kind_;
  const HeadChoice head_;
  tasks::MetricFacts primary_;
  int64_t decode_length_ = 0;
};

}  // namespace

std::unique_ptr<Objective> supervised_objective(const tasks::TaskFacts& facts, const HeadChoice& head) {
  return std::make_unique<SupervisedObjective>(facts, head);
}

}  // namespace spt::protocols
