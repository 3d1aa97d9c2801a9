#include "harness/worker/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/error.h"
#include "harness/worker/cost.h"
#include "harness/worker/stage.h"
#include "harness/worker/train.h"

namespace spt::worker {
namespace {

constexpr double kMeasuredFlops = 1e9;      ///< of one measured step, where rows of 4 x 32 positions do not need more
constexpr int64_t kShortestMeasured = 128;  ///< of the three lengths measured, each twice the one before

/// Bytes that are held now, and the most there were.
class MemoryCount : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  void forget_peak() { peak_ = held_; }
  int64_t held() const { return held_; }
  int64_t peak() const { return peak_; }

 private:
  int64_t held_ = 0, peak_ = 0;
};

/// Rows of `length` positions; the last is a pad where the rows of train differ in length, so that masks are made.
tasks::Batch random_examples(const tasks::TaskFacts& facts, int64_t examples, int64_t length) {
  const int64_t rows = examples * facts.documents;
  const bool ragged = facts.train_lengths.size() > 1 && length > 1;
  tasks::Batch batch;
  batch.documents = facts.documents;
  if (facts.vocabulary > 0) batch.tokens = torch::randint(facts.vocabulary, {rows, length}, torch::kInt64);
  else batch.values = torch::randn({rows, length, facts.channels});
  batch.lengths = torch::full({rows}, ragged ? length - 1 : length, torch::kInt64);
  batch.example_ids = torch::arange(examples);
  if (facts.kind == "classification") batch.labels = torch::randint(facts.outputs, {examples}, torch::kInt64);
  if (facts.kind == "regression") batch.targets = torch::randn({examples, facts.outputs});
  if (facts.kind == "sequence-to-sequence") {
    batch.decoder_tokens = torch::randint(facts.outputs, {examples, length}, torch::kInt64);
    batch.decoder_lengths = torch::full({examples}, length, torch::kInt64);
  }
  return batch;
}

/// Bytes held in one training step: between its two passes, after them, and at most.
struct StepMemory {
  double forward = 0, backward = 0, peak = 0;
};

StepMemory measured_step(const MemorySubject& subject, int64_t examples, int64_t length) {
  const auto count = std::make_shared<MemoryCount>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, count);
  torch::manual_seed(0);
  const auto model = models::build_model(subject.architecture, subject.spec);
  const at::ScalarType type = scalar_type(subject.train.precision);
  model->to(type);
  model->reset_parameters(Rng(0).stream("init"));
  model->train();
  const auto optimizer = make_optimizer(*model, subject.train, subject.profile);
  const protocols::Prepared batch =
      to_device(subject.objective.prepare(random_examples(subject.facts, examples, length), 0, Rng(0).stream("mask")), at::kCPU, type);
  count->forget_peak();
  StepMemory step;
  at::Tensor loss = subject.objective.loss_sum(model->forward(batch.input), batch) / static_cast<double>(std::max<int64_t>(1, batch.count));
  step.forward = static_cast<double>(count->held());
  if (loss.requires_grad()) loss.backward();
  loss.reset();
  step.backward = static_cast<double>(count->held());
  optimizer->clip(1.0);
  optimizer->step(1.0);
  step.peak = static_cast<double>(count->peak());
  return step;
}

/// A stage at another depth, and with rows no longer than `length`.
class SmallerSubject {
 public:
  SmallerSubject(const MemorySubject& subject, int64_t n_layers, int64_t length)
      : spec_(subject.spec), subject_{subject.architecture, spec_, subject.objective, subject.facts, subject.train, subject.profile} {
    if (n_layers > 0) spec_.options["n_layers"] = n_layers;
    spec_.input.max_length = std::min(spec_.input.max_length, length);
  }
  const MemorySubject& subject() const { return subject_; }

 private:
  models::ModelSpec spec_;
  MemorySubject subject_;
};

/// The value at `x` of the line through (a, at_a) and (b, at_b).
double on_line(double x, double a, double at_a, double b, double at_b) { return at_a + (at_b - at_a) * (x - a) / (b - a); }

/// Layers; 0 for an architecture that has no such option.
int64_t depth_of(const MemorySubject& subject) {
  const auto layers = subject.spec.options.find("n_layers");
  return layers == subject.spec.options.end() ? 0 : std::get<int64_t>(layers->second);
}

/// Bytes at full depth for `examples` at one length. What is held between the passes is linear in layers and in examples; what comes on top
/// for a moment belongs to one layer, and has a part that examples share.
double at_length(const MemorySubject& subject, int64_t examples, int64_t length) {
  const auto depth = static_cast<double>(depth_of(subject)), rows = static_cast<double>(examples);
  const bool whole_depth = depth <= 2, all_rows = examples <= 2;
  const auto of_rows = [&](int64_t measured_rows) {
    const auto step = [&](int64_t n_layers) {
      return measured_step(SmallerSubject(subject, n_layers, length).subject(), measured_rows, length);
    };
    if (whole_depth) return step(depth_of(subject));
    const StepMemory one = step(1), two = step(2);
    StepMemory all{on_line(depth, 1, one.forward, 2, two.forward), on_line(depth, 1, one.backward, 2, two.backward), 0};
    all.peak = all.forward + two.peak - two.forward;
    return all;
  };
  if (all_rows) {
    const StepMemory all = of_rows(examples);
    return std::max(all.peak, all.backward);
  }
  const StepMemory one = of_rows(1), two = of_rows(2);
  const double extra = one.peak - one.forward, more = std::clamp(two.peak - two.forward - extra, 0.0, extra);
  return std::max(on_line(rows, 1, one.forward, 2, two.forward) + extra + more * (rows - 1),
                  on_line(rows, 1, one.backward, 2, two.backward));
}

/// Training FLOPs of one example of two layers at most.
double smallest_step_flops(const MemorySubject& subject, int64_t length) {
  const SmallerSubject smaller(subject, std::min<int64_t>(2, depth_of(subject)), length);
  const models::Flops forward = models::model_flops(subject.architecture, smaller.subject().spec, length);
  return 3 * (forward.fixed + forward.per_example);
}

/// Rows are padded to multiples of it: the block of local attention, the chunk of MEGA; 1 where there is none.
int64_t block_length(const OptionMap& options) {
  const auto integer = [&](const char* name) {
    const auto found = options.find(name);
    const int64_t* value = found == options.end() ? nullptr : std::get_if<int64_t>(&found->second);
    return value == nullptr ? 0 : *value;
  };
  const auto attention = options.find("attention");
  const bool local = attention != options.end() && attention->second == OptionValue(std::string("local"));
  return std::max<int64_t>({1, integer("chunk"), local ? integer("window") : 0});
}

/// Whether FLOPs grow with the square of long rows: every position looks at every other.
bool compares_all_pairs(const MemorySubject& subject, int64_t length) {
  const auto flops = [&](int64_t L) { return models::model_flops(subject.architecture, subject.spec, L).per_example; };
  return flops(4 * length) - flops(2 * length) > 2 * 1.3 * (flops(2 * length) - flops(length));
}

/// Bytes at length L from those at lengths x, 2x and 4x: a line through the last two, or a parabola.
double extrapolated(double L, const std::array<double, 3>& x, const std::array<double, 3>& y, bool pairs) {
  const double first = (y[1] - y[0]) / (x[1] - x[0]), second = (y[2] - y[1]) / (x[2] - x[1]);
  const double bend = pairs ? std::max(0.0, second - first) / (x[2] - x[0]) : 0;
  return y[2] + (L - x[2]) * (second + bend * (L - x[1]));
}

}  // namespace

int64_t counted_memory(const MemorySubject& subject, int64_t examples, int64_t length) {
  return std::llround(measured_step(subject, examples, length).peak);
}

int64_t estimated_memory(const MemorySubject& subject) {
  SPT_CHECK(!subject.facts.train_lengths.empty(), "no train lengths");
  const int64_t longest = subject.facts.train_lengths.back().first;
  const std::vector<int64_t> parts = part_sizes(subject.train.batch, subject.train.accumulate);
  const int64_t examples = *std::max_element(parts.begin(), parts.end());
  int64_t shortest = kShortestMeasured;
  while (shortest > 32 && smallest_step_flops(subject, 4 * shortest) > kMeasuredFlops) shortest /= 2;
  const int64_t block = block_length(subject.spec.options);
  shortest = (shortest + block - 1) / block * block;
  if (longest <= 8 * shortest) return std::llround(at_length(subject, examples, longest));
  std::array<double, 3> x{}, y{};
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t length = shortest << i;
    x[i] = static_cast<double>(length);
    y[i] = at_length(subject, examples, length);
  }
  return std::llround(extrapolated(static_cast<double>(longest), x, y, compares_all_pairs(subject, longest)));
}

}  // namespace spt::worker
