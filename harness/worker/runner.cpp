#include "harness/worker/runner.h"

#include <spdlog/spdlog.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <optional>

#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/catalog.h"
#include "harness/worker/checkpoint.h"
#include "harness/worker/evaluate.h"
#include "harness/worker/process.h"
#include "harness/worker/stamp.h"
#include "harness/worker/transfer.h"
#include "protocols/init.h"
#include "results/journal.h"

namespace spt::worker {
namespace {

using Clock = std::chrono::steady_clock;
using protocols::MetricValue;
double elapsed_s(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

std::vector<results::Metric> as_records(const std::string& split, const std::vector<MetricValue>& values) {
  std::vector<results::Metric> metrics;
  for (const MetricValue& value : values) metrics.push_back({split, value.name, value.value, value.n});
  return metrics;
}

void append(std::vector<results::Metric>& to, const std::vector<results::Metric>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Equal bits, or within `tolerance` relative; NaN equals NaN.
bool equal_metrics(const std::vector<MetricValue>& a, const std::vector<MetricValue>& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const MetricValue& x, const MetricValue& y) {
    const bool same = x.value == y.value || (std::isnan(x.value) && std::isnan(y.value)) ||
                      std::abs(x.value - y.value) <= tolerance * std::max(1.0, std::abs(y.value));
    return x.name == y.name && x.n == y.n && same;
  });
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

/// One attempt at one stage, from opening its data to its test score.
class StageRunner {
 public:
  StageRunner(std::filesystem::path dir, const RunRequest& request, const Registry& registry, results::JournalWriter& journal)
      : dir_(std::move(dir)),
        request_(request),
        journal_(journal),
        startup_s_(process_age_s()),
        device_(prepare_device(request.device, request.threads)),
        stamp_(make_stamp(request.device, request.threads)),
        stage_(registry, request.job, static_cast<size_t>(request.stage), request.data_root),
        open_s_(elapsed_s(start_)),
        model_(stage_.fresh_model(device_)),
        optimizer_(stage_.optimizer(*model_)),
        evaluate_at_(evaluation_steps(stage_.spec().steps, stage_.spec().evaluations)) {}

  void run() {
    const results::InitEvent init = init_event();
    const std::optional<results::TransferEvent> audit = start_from_weights();
    const std::string note = resume();
    reset_peak_memory(device_);
    write_start(note);
    if (state_.totals.step == 0) journal_.write(0, init);
    if (audit && state_.totals.step == 0) journal_.write(0, *audit);
    evaluate_if_due();
    const TrainSetup setup{
        *model_,      *optimizer_, stage_.objective(),        stage_.train_data(), stage_.spec().train, stage_.spec().steps,
        stage_.rng(), device_,     request_.prefetch_threads, stage_.cost(),       &state_.selection};
    train_stage(setup, state_.totals, [this](const StepReport& report) { return after_step(report); });
    finish();
  }

  int64_t step() const { return state_.totals.step; }

 private:
  // --- before the first step
  results::InitEvent init_event() const {
    results::InitEvent event{.init = stage_.init(), .groups = {}};
    for (const protocols::InitGroup& g : protocols::init_groups(*model_, stage_.init()))
      event.groups.push_back({g.role, g.tensors, g.values, g.redrawn, g.mean, g.std});
    return event;
  }

  /// The first stage starts from the job's weights where it has some, any other from the stage before.
  std::optional<results::TransferEvent> start_from_weights() {
    if (request_.stage > 0) return start_from_parent();
    const GivenCheckpoint& given = request_.job.checkpoint;
    if (given.sha256.empty()) return {};
    const std::string bytes = read_file(given.file);  // once: what is hashed is what is loaded
    if (const std::string found = sha256(bytes); found != given.sha256)
      throw DataError("{}: its SHA-256 is {}, the job was planned for {}; plan it again", given.file, found, given.sha256);
    const SafetensorsFile weights = parse_safetensors(bytes, given.file);
    check_made_for(weights, request_.job.architecture, stage_.architecture(), given.file);
    return transfer_given(weights, *model_, given.file);
  }

  results::TransferEvent start_from_parent() {
    const std::filesystem::path file = dir_ / request_.parent_dir / "best.safetensors";
    const LoadedBest parent = read_best(file);
    const std::string wanted = stage_key(request_.job, static_cast<size_t>(request_.stage) - 1);
    if (parent.stage_key != wanted)
      throw Error("{}: belongs to stage {}, this stage starts from {}", file.string(), parent.stage_key, wanted);
    return transfer(parent.content, *model_, file.string());
  }

  /// Goes on from last.safetensors where that is sound; says what was done. Nothing is changed unless all of it fits.
  std::string resume() {
    const std::filesystem::path file = last_file();
    if (!std::filesystem::exists(file)) return "";
    try {
      const LoadedLast last = read_last(file);
      if (last.stage_key != request_.stage_key) return fmt::format("restarted: the checkpoint belongs to stage {}", last.stage_key);
      const ResumeVerdict verdict = may_resume(last.stamp, stamp_, request_.resume_across);
      if (!verdict.allowed) return fmt::format("restarted: the checkpoint comes from another program or device: {}", verdict.note);
      if (last.state.best_step > 0) check_best(last.state, verdict.equal);
      restore_last(last, *model_, *optimizer_, file.string());
      state_ = last.state;
      state_.mixed_stamps = state_.mixed_stamps || !verdict.equal;
      return verdict.equal ? "resumed" : fmt::format("resumed under another numerics stamp: {}", verdict.note);
    } catch (const Error& error) {  // a damaged checkpoint costs its steps, never the stage
      return fmt::format("restarted: {}", error.what());
    }
  }

  /// best may be one evaluation ahead of last (killed between the two writes): an equal stamp brings the same one again, another may not.
  void check_best(const StageState& state, bool equal_stamp) const {
    const LoadedBest best = read_best(best_file());
    if (best.step < state.best_step || (best.step > state.best_step && !equal_stamp))
      throw Error("{}: is of step {}, the checkpoint selected step {}", best_file().string(), best.step, state.best_step);
  }

  void write_start(const std::string& note) {
    const tasks::OpenedTask& task = stage_.task();
    const Baseline baseline = trivial_baseline(task);
    journal_.write(step(), results::StartEvent{.stamp = stamp_,
                                               .host = host_name(),
                                               .pid = ::getpid(),
                                               .resumed_from = step(),
                                               .resume_note = note,
                                               .parameters = parameter_count(*model_),
                                               .parameters_body = body_parameter_count(*model_),
                                               .data_hash = task.facts.data_hash,
                                               .partial_data = task.facts.partial,
                                               .train_size = stage_.train_data()->size(),
                                               .validation_size = task.validation->size(),
                                               .test_size = task.test->size(),
                                               .chance = baseline.chance,
                                               .majority = baseline.majority,
                                               .notes = task.notes,
                                               .startup_s = startup_s_,
                                               .open_s = open_s_});
    spdlog::info("stage {} step {}/{} on {}{}{}", stage_.spec().name, step(), stage_.spec().steps, stamp_.device_model,
                 note.empty() ? "" : ": ", note);
  }

  // --- between steps
  bool after_step(const StepReport& report) {
    last_report_ = report;
    step_times_.push_back(report.step_s);
    if (step_times_.size() > 31) step_times_.pop_front();
    heartbeat();
    evaluate_if_due();
    if (stop_requested()) stop();
    if (elapsed_s(last_save_) >= request_.checkpoint_s) save();
    return true;
  }

  void heartbeat() {
    if (elapsed_s(last_beat_) < request_.heartbeat_s) return;
    last_beat_ = Clock::now();
    std::vector<double> times(step_times_.begin(), step_times_.end());
    std::sort(times.begin(), times.end());
    const std::string metric = stage_.objective().selection().name;
    journal_.write(step(), results::ProgressEvent{.loss = last_report_.loss,
                                                  .lr = last_report_.lr,
                                                  .step_s = times.empty() ? 0 : times[times.size() / 2],
                                                  .steps = stage_.spec().steps,
                                                  .metric = state_.last.empty() ? "" : metric,
                                                  .metric_value = state_.last.empty() ? 0 : metric_value(state_.last, metric)});
  }

  [[noreturn]] void stop() {
    save();
    throw Stopped();
  }

  Evaluation evaluate_split(models::Model& model, const tasks::Dataset& data, const std::vector<int64_t>& indices) {
    const auto between = [this] {
      heartbeat();
      if (stop_requested()) stop();  // the step is done, its evaluation is not: it will be made on resuming
    };
    return evaluate({model, stage_.objective(), device_, request_.prefetch_threads, between}, data, indices, stage_.rng().stream("mask"));
  }

  void evaluate_if_due() {
    while (state_.evaluations < stage_.spec().evaluations && evaluate_at_[state_.evaluations] <= step()) evaluate_once();
  }

  void evaluate_once() {
    SPT_CHECK(evaluate_at_[state_.evaluations] == step(), "evaluation {} was due at step {}", state_.evaluations + 1,
              evaluate_at_[state_.evaluations]);
    const auto start = Clock::now();
    const tasks::Dataset& validation = *stage_.task().validation;
    const Evaluation on_train = evaluate_split(*model_, *stage_.train_data(), stage_.train_sample());
    const Evaluation on_validation = evaluate_split(*model_, validation, all_indices(validation.size()));
    state_.evaluate_s += elapsed_s(start);
    ++state_.evaluations;
    state_.last = on_validation.metrics;
    const tasks::MetricFacts by = stage_.objective().selection();
    state_.selection.push_back(metric_value(state_.last, by.name));
    const bool first = state_.best_step == 0;
    if (first || is_better(metric_value(state_.last, by.name), metric_value(state_.best, by.name), by.higher_is_better)) {
      state_.best = state_.last;
      state_.best_step = step();
      state_.best_index = state_.evaluations;
      const auto saving = Clock::now();
      save_best(best_file(), *model_, step(), request_.stage_key);
      state_.save_s += elapsed_s(saving);
    }
    results::EvaluationEvent event{.index = state_.evaluations, .metrics = as_records("train", on_train.metrics)};
    append(event.metrics, as_records("validation", on_validation.metrics));
    journal_.write(step(), event);
    save();
  }

  void save() {
    const auto start = Clock::now();
    StageState now = state_;
    now.wall_s += elapsed_s(start_);
    now.peak_memory = std::max(now.peak_memory, peak_memory(device_));
    save_last(last_file(), *model_, *optimizer_, now, request_.stage_key, stamp_);
    journal_.write(step(), results::CheckpointEvent{.file = last_file().filename().string()});
    journal_.sync();
    state_.save_s += elapsed_s(start);
    last_save_ = Clock::now();
  }

  // --- after the last step
  void finish() {
    SPT_CHECK(step() == stage_.spec().steps && state_.evaluations == stage_.spec().evaluations, "step {} and {} evaluations at the end",
              step(), state_.evaluations);
    const std::string by = stage_.objective().selection().name;
    if (!std::isfinite(metric_value(state_.best, by)))
      throw Diverged("validation " + by, fmt::format("no evaluation gave a finite {}", by));
    results::DoneEvent done = summary();
    const auto reloading = Clock::now();
    const auto selected = stage_.fresh_model(device_);
    const LoadedBest best = read_best(best_file());
    if (best.step != state_.best_step || best.stage_key != request_.stage_key)
      throw Error("{}: is of step {} of stage {}, selected was step {}", best_file().string(), best.step, best.stage_key, state_.best_step);
    restore_model(best.content, *selected, best_file().string());
    const tasks::Dataset& validation = *stage_.task().validation;
    const std::vector<MetricValue> again = evaluate_split(*selected, validation, all_indices(validation.size())).metrics;
    done.reload_equal = equal_metrics(again, state_.best, 0);
    const bool exact = device_.is_cpu() && !state_.mixed_stamps;
    if (!done.reload_equal && (exact || !equal_metrics(again, state_.best, 1e-4)))
      throw Error("the selected checkpoint, read back, gives validation {} = {:.17g}, in training it was {:.17g}", by,
                  metric_value(again, by), metric_value(state_.best, by));
    done.reload_s = elapsed_s(reloading);
    done.selected = as_records("validation", state_.best);
    if (stage_.supervised()) read_test(*selected, done);
    done.wall_s = state_.wall_s + elapsed_s(start_);
    done.peak_memory = std::max(state_.peak_memory, peak_memory(device_));
    journal_.write(step(), done);
    journal_.sync();
    std::filesystem::remove(last_file());
  }

  void read_test(models::Model& selected, results::DoneEvent& done) {
    const auto start = Clock::now();
    const tasks::Dataset& test = *stage_.task().test;
    const Evaluation evaluation = evaluate_split(selected, test, all_indices(test.size()));
    done.test_s = elapsed_s(start);
    append(done.selected, as_records("test", evaluation.metrics));
    const bool classes = stage_.task().facts.kind == "classification";
    std::vector<int32_t> clusters;
    for (int64_t i = 0; i < test.size() && test.cluster(i) >= 0; ++i) clusters.push_back(static_cast<int32_t>(test.cluster(i)));
    SPT_CHECK(clusters.empty() || static_cast<int64_t>(clusters.size()) == test.size(), "{} of {} test examples have a cluster",
              clusters.size(), test.size());
    journal_.write(step(), results::ScoresEvent{.split = "test",
                                                .metric = stage_.objective().selection().name,
                                                .scores = evaluation.scores,
                                                .predicted = classes ? evaluation.predicted : std::vector<int32_t>{},
                                                .clusters = std::move(clusters)});
  }

  results::DoneEvent summary() const {
    const TrainTotals& totals = state_.totals;
    results::DoneEvent done;
    done.selected_step = state_.best_step;
    done.not_converged = selected_late(state_.best_index, stage_.spec().evaluations);
    done.last = as_records("validation", state_.last);
    done.steps = totals.step;
    done.examples = totals.examples;
    done.tokens = totals.tokens;
    done.flops = totals.flops;
    done.train_s = totals.train_s;
    done.data_wait_s = totals.data_wait_s;
    done.evaluate_s = state_.evaluate_s;
    done.save_s = state_.save_s;
    return done;
  }

  std::filesystem::path last_file() const { return dir_ / "last.safetensors"; }
  std::filesystem::path best_file() const { return dir_ / "best.safetensors"; }

  const Clock::time_point start_ = Clock::now();
  const std::filesystem::path dir_;
  const RunRequest& request_;
  results::JournalWriter& journal_;
  const double startup_s_;
  const at::Device device_;
  const results::Stamp stamp_;
  const Stage stage_;
  const double open_s_;
  const std::shared_ptr<models::Model> model_;
  const std::unique_ptr<protocols::Optimizer> optimizer_;
  const std::vector<int64_t> evaluate_at_;
  StageState state_;
  StepReport last_report_;
  std::deque<double> step_times_;
  Clock::time_point last_save_ = Clock::now(), last_beat_{};
};

}  // namespace

bool run_stage(const std::filesystem::path& dir, const Registry& registry) {
  const std::filesystem::path file = dir / "request.json";
  const RunRequest request = run_request_from_json(parse_json(read_file(file), file.string()), file.string());
  results::JournalWriter journal(dir / "journal.jsonl", request.stage_key, request.attempt);
  int64_t step = 0;
  try {
    if (request.stage < 0 || request.stage >= static_cast<int64_t>(request.job.stages.size()))
      throw Error("{}: the job has no stage {}", file.string(), request.stage);
    if (stage_key(request.job, static_cast<size_t>(request.stage)) != request.stage_key)
      throw Error("{}: the stage key is not that of the job; planner and worker differ", file.string());
    StageRunner runner(dir, request, registry, journal);
    try {
      runner.run();
      return true;
    } catch (...) {
      step = runner.step();
      throw;
    }
  } catch (...) {  // the only catch-all: whatever went wrong with a stage is a line of its journal
    const results::FailedEvent failed = failure_in_flight();
    spdlog::error("{} at step {}: {}", results::failure_name(failed.failure), step, failed.message);
    journal.write(step, failed);
    journal.sync();
    return false;
  }
}

results::FailedEvent failure_in_flight() {
  using results::Failure;
  try {
    throw;
  } catch (const Diverged& error) {
    return {.failure = Failure::kDiverged, .message = error.what(), .tensor = error.tensor()};
  } catch (const Stopped& error) {
    return {.failure = Failure::kKilled, .message = error.what(), .tensor = {}};
  } catch (const DataError& error) {
    return {.failure = Failure::kData, .message = error.what(), .tensor = {}};
  } catch (const std::bad_alloc&) {
    return {.failure = Failure::kOom, .message = "out of memory", .tensor = {}};
  } catch (const c10::OutOfMemoryError& error) {
    return {.failure = Failure::kOom, .message = error.what_without_backtrace(), .tensor = {}};
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const bool memory = message.find("can't allocate memory") != std::string::npos;
    return {.failure = memory ? Failure::kOom : Failure::kCrashed, .message = message, .tensor = {}};
  } catch (const std::exception& error) {
    return {.failure = Failure::kCrashed, .message = error.what(), .tensor = {}};
  } catch (...) {
    return {.failure = Failure::kCrashed, .message = "an exception of an unknown type", .tensor = {}};
  }
}

}  // namespace spt::worker
