#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
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
  at::Tensor target;     ///< supervised: (B) classes or (B, K) values; others: what is at input.positions, (n) ids or (n, channels) values
  int64_t count = 0;     ///< positions (or examples) that the loss counts; known before the forward pass
  int64_t examples = 0;  ///< B
  int64_t tokens = 0;    ///< real positions, pads not counted
  at::Tensor example_ids;  ///< (B) int64
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
  /// Per example, in the order added: score (correctness, squared error, ...) and predicted class (-1 where there is none). Supervised
  /// only.
  virtual const std::vector<float>& scores() const = 0;
  virtual const std::vector<int32_t>& predicted() const = 0;
};

/// What a stage learns: input and target of a batch, loss, metrics. Works on any task that has the inputs for it.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual models::InputSpec input(const tasks::TaskFacts& facts) const = 0;
  virtual models::HeadSpec head(const tasks::TaskFacts& facts) const = 0;
  /// `epochs` (one an example: a batch may span two) and `mask` decide the masks, with the example ids: draws are functions of
  /// (mask stream, epoch, example id). Safe to call from several threads at once.
  virtual Prepared prepare(const tasks::Batch& batch, std::span<const uint64_t> epochs, const Stream& mask) const = 0;
  /// The same for a batch inside one epoch.
  Prepared prepare(const tasks::Batch& batch, uint64_t epoch, const Stream& mask) const;
  /// Expected number of positions of a row with `length` real ones at which a sequence head is applied; below 0: it is no sequence head.
  virtual double expected_positions(int64_t length) const = 0;
  /// Sum (not mean) of the loss over the counted positions, a scalar with gradient.
  virtual at::Tensor loss_sum(const at::Tensor& output, const Prepared& batch) const = 0;
  virtual std::unique_ptr<Metrics> metrics() const = 0;
  /// Name and direction of the metric that selects the checkpoint.
  virtual tasks::MetricFacts selection() const = 0;
  /// Above 0: evaluation also needs the model's decode(), with this longest answer, and its ids are added after the output of forward().
  virtual int64_t decode_length() const { return 0; }
};

struct HeadChoice {
  std::string pool = "mean";
  std::string hidden = "none";
};

/// A registered objective, for the catalog.
struct ObjectiveFacts {
  std::string name;
  int version = 1;  ///< raised by hand when its numbers change
  std::vector<OptionSchema> options;
  bool needs_causal = false;  ///< the model must not see later positions
};
const std::vector<ObjectiveFacts>& objectives();                ///< sorted by name
const ObjectiveFacts& find_objective(const std::string& name);  ///< Errors: Error with the known names

/// supervised {} | masked {ratio} | causal {}. Errors: Error for an unknown name or option, or a task without what it needs.
std::unique_ptr<Objective> make_objective(const std::string& name, const OptionMap& options, const tasks::TaskFacts& facts,
                                          const HeadChoice& head);
const std::vector<std::string>& objective_names();

/// Settings of the masked objective.
struct MaskedOptions {
  double ratio = 0;
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("ratio", self.ratio, OptionInfo{.effect = "share of real positions that are hidden; 0: the task's own", .min = 0, .max = 1});
  }
};

// The objectives by themselves; make_objective chooses among them.
std::unique_ptr<Objective> supervised_objective(const tasks::TaskFacts& facts, const HeadChoice& head);
std::unique_ptr<Objective> masked_objective(const MaskedOptions& options, const tasks::TaskFacts& facts);
std::unique_ptr<Objective> causal_objective(const tasks::TaskFacts& facts);

}  // namespace spt::protocols
