#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/base/options.h"
#include "harness/base/rng.h"
#include "models/architecture.h"
#include "tasks/task.h"

namespace spt::protocols {

/// One batch made ready for a network and a loss.
struct Prepared {
  models::ModelInput input;
  at::Tensor target;        ///< supervised: (B) classes or (B, K) values; others: what is at input.positions, (n) ids or (n, channels) values
  int64_t count = 0;        ///< positions (or examples) that the loss counts; known before the forward pass
  int64_t examples = 0;     ///< B
  int64_t tokens = 0;       ///< real positions, pads not counted
  at::Tensor example_ids;   ///< (B) int64
};

struct MetricValue {
  std::string name;
  double value = 0;
  int64_t n = 0;  ///< examples or positions it was taken over
};

/// Sums over a split; values come from the sums, never from means of batches.
class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual void add(const at::Tensor& output, const Prepared& batch) = 0;
  virtual std::vector<MetricValue> values() const = 0;  ///< "loss" and the metrics of the objective, in a fixed order
  /// Per example, in the order added: score (correctness, squared error, ...) and predicted class (-1 where there is none). Supervised only.
  virtual const std::vector<float>& scores() const = 0;
  virtual const std::vector<int32_t>& predicted() const = 0;
};

/// What a stage learns: input and target of a batch, loss, metrics. Works on any task that has the inputs for it.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual models::InputSpec input(const tasks::TaskFacts& facts) const = 0;
  virtual models::HeadSpec head(const tasks::TaskFacts& facts) const = 0;
  /// `epoch` and `mask` decide the masks, with the example ids: draws are functions of (mask stream, epoch, example id).
  virtual Prepared prepare(const tasks::Batch& batch, uint64_t epoch, const Stream& mask) const = 0;
  /// Sum (not mean) of the loss over the counted positions, a scalar with gradient.
  virtual at::Tensor loss_sum(const at::Tensor& output, const Prepared& batch) const = 0;
  virtual std::unique_ptr<Metrics> metrics() const = 0;
  /// Name and direction of the metric that selects the checkpoint.
  virtual tasks::MetricFacts selection() const = 0;
  /// Evaluation needs the model's decode() instead of forward() when above 0: the longest answer.
  virtual int64_t decode_length() const { return 0; }
};

struct HeadChoice {
  std::string pool = "mean";
  std::string hidden = "none";
};

/// supervised {} | masked {ratio} | causal {}. Errors: Error for an unknown name or option, or a task without what it needs.
std::unique_ptr<Objective> make_objective(const std::string& name, const OptionMap& options, const tasks::TaskFacts& facts, const HeadChoice& head);
const std::vector<std::string>& objective_names();

}  // namespace spt::protocols
