#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "harness/base/error.h"
#include "harness/base/log.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "harness/estimate.h"
#include "harness/plan.h"
#include "harness/schedule/progress.h"
#include "harness/schedule/supervisor.h"
#include "harness/work.h"
#include "harness/worker_client.h"
#include "reports/report.h"
#include "results/run_lock.h"

namespace spt::cli {
namespace {

struct RunFlags {
  std::string matrix, db = "spt-bench.db", data, worker, keep = "none";
  std::vector<std::string> retry;
  schedule::SlotOptions slots;
  schedule::Limits limits;
  double memory_gib = 0;
  int64_t max_failures = 0, prefetch_threads = 1;
  double checkpoint_s = 30;
  bool fail_fast = false, resume_across = false, no_report = false, no_probe = false;
};

schedule::RunOptions run_options(const RunFlags& flags, const std::filesystem::path& worker) {
  schedule::RunOptions options;
  options.worker = worker;
  options.runs = std::filesystem::absolute(flags.db + ".runs");
  options.data_root = std::filesystem::absolute(data_root(flags.data));
  options.slots = schedule::make_slots(flags.slots, schedule::available_cores(), schedule::available_gpus());
  options.limits = flags.limits;
  options.limits.memory = static_cast<int64_t>(flags.memory_gib * (1 << 30));
  options.keep = flags.keep == "best" ? schedule::Keep::kBest : schedule::Keep::kNone;
  options.fail_fast = flags.fail_fast;
  options.max_failures = flags.max_failures;
  options.prefetch_threads = flags.prefetch_threads;
  options.checkpoint_s = flags.checkpoint_s;
  options.resume_across = flags.resume_across;
  return options;
}

/// Which cell and seed spell the spec of a stage.
class SpecSource {
 public:
  SpecSource(const Plan& plan, const std::vector<size_t>& stages) : plan_(plan) {
    for (const size_t i : stages) stage_of_[plan.stages[i].key] = i;
  }
  JobSpec operator()(const std::string& key) const {
    const PlanStage& stage = plan_.stages[stage_of_.at(key)];
    return plan_.job_spec(plan_.cells[stage.cell], stage.seed);
  }

 private:
  const Plan& plan_;
  std::unordered_map<std::string, size_t> stage_of_;
};

/// What each stage of the plan weighs in the display of progress: the seconds that plan would state, or FLOPs where they are not to be had.
/// A job that cannot be probed is no reason not to run the others.
std::vector<double> stage_costs(const Plan& plan, const Work& work, const results::Store& store, WorkerClient& worker,
                                const RunFlags& flags, const schedule::RunOptions& options, Context& context) {
  if (!flags.no_probe && !work.run.empty()) {
    try {
      const EstimateOptions asked{options.data_root, options.slots.front().device, flags.slots.threads};
      const Estimate estimate = estimate_time(plan, work, store.attempt_times(), worker, asked);
      context.out << "time    " << time_text(estimate, static_cast<int64_t>(options.slots.size())) << '\n';
      return estimate.stage_s;
    } catch (const Error& error) {
      context.out << "note: the time left is estimated from FLOPs: " << error.what() << '\n';
    }
  }
  std::vector<double> costs;
  for (const PlanStage& stage : plan.stages) costs.push_back(plan.cells[stage.cell].costs[stage.index].flops);
  return costs;
}

std::vector<schedule::StageTask> tasks_of(const Plan& plan, const std::vector<size_t>& stages, const std::vector<double>& costs) {
  std::vector<schedule::StageTask> tasks;
  for (const size_t i : stages) {
    const PlanStage& stage = plan.stages[i];
    const PlanCell& cell = plan.cells[stage.cell];
    const bool pretraining = stage.index + 1 < cell.spec.stages.size();
    tasks.push_back({.key = stage.key,
                     .label = plan.job_name(cell, stage.seed) + (pretraining ? " (pretrain)" : ""),
                     .parent = stage.parent < 0 ? "" : plan.stages[static_cast<size_t>(stage.parent)].key,
                     .pretraining = pretraining,
                     .stage = stage.index,
                     .cost = costs[i]});
  }
  return tasks;
}

void record(results::Store& store, const Plan& plan) {
  std::vector<results::PlannedStage> stages;
  const auto known = store.stage_states();
  for (size_t i = 0; i < plan.stages.size(); ++i)
    if (!known.contains(plan.stages[i].key)) stages.push_back(planned_stage(plan, i));
  store.record_plan(matrix_row(plan), planned_jobs(plan), stages);
}

std::unique_ptr<schedule::Observer> make_observer(std::ostream& out) {
  winsize size{};
  if (&out == &std::cout && ::isatty(STDOUT_FILENO)) {
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return schedule::make_live_observer(out, size.ws_col > 0 ? size.ws_col : 100);
  }
  return schedule::make_plain_observer(out);
}

void print_summary(const schedule::RunSummary& summary, const RunFlags& flags, Context& context) {
  context.out << fmt::format("{} stages done, {} failed, {} blocked, {} left\n", summary.done, summary.failed, summary.blocked,
                             summary.left);
  for (const auto& [label, reason] : summary.failures) context.out << fmt::format("  {}: {}\n", label, reason);
  if (summary.failed + summary.blocked + summary.left > 0)
    context.out << fmt::format("run `spt-bench run --matrix {} --db {}` again to go on\n", flags.matrix, flags.db);
}

void print_tables(const results::Store& store, const results::MatrixRow& matrix, Context& context) {
  try {
    print_report(store, matrix, {.figures = false}, "", context);
  } catch (const Error& error) {  // such as tables over several devices, which only `report --allow-mixed` prints
    context.out << "note: no tables: " << error.what() << '\n';
  }
}

void run_matrix(const RunFlags& flags, Context& context) {
  const std::filesystem::path worker = worker_program(flags.worker);
  const schedule::RunOptions options = run_options(flags, worker);
  const auto client = make_worker_client({.program = worker, .cache = default_cache()});
  const MatrixText text = matrix_text(flags.matrix);
  const Plan plan = plan_matrix(parse_matrix(text.text, text.file), *client, options.data_root);
  for (const std::string& note : plan.notes) context.out << "note: " << note << '\n';

  const results::RunLock lock(flags.db);
  results::Store store(flags.db, results::Store::Mode::kReadWrite);
  std::filesystem::create_directories(options.runs);
  log_to_file(flags.db + ".log");
  if (const int64_t left = schedule::recover(store, options.runs))
    context.out << fmt::format("{} stages of an interrupted run are taken up again\n", left);
  record(store, plan);
  const Work work = work_left(plan, store.stage_states(),
                              {.retry = {flags.retry.begin(), flags.retry.end()}, .has_checkpoint = [&](const std::string& key) {
                                 return std::filesystem::exists(options.runs / key / "best.safetensors");
                               }});
  context.out << fmt::format("{}: {} jobs, {} done, {} stages to run on {} slots\n", plan.matrix.name, work.jobs, work.jobs_done,
                             work.run.size(), options.slots.size());
  const auto observer = make_observer(context.out);
  const std::vector<double> costs = stage_costs(plan, work, store, *client, flags, options, context);
  const schedule::RunSummary summary =
      schedule::Supervisor(store, options, tasks_of(plan, work.run, costs), SpecSource(plan, work.run), *observer).run();
  print_summary(summary, flags, context);
  const results::MatrixRow row = matrix_row(plan);
  const results::StatusCounts counts = store.status(row.id);
  if (counts.done < counts.jobs) context.exit_code = 1;
  if (work.run.empty() && work.jobs_failed + work.jobs_blocked > 0)
    context.out << fmt::format(
        "{} jobs stay failed and {} blocked by them: `spt-bench status --db {} --failures` says why; diverged, data and oom need --retry\n",
        work.jobs_failed, work.jobs_blocked, flags.db);
  if (!flags.no_report && !summary.stopped)
    for (const results::MatrixRow& matrix : store.matrices())
      if (matrix.id == row.id) print_tables(store, matrix, context);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("run", "Trains what a matrix wants and the database does not have yet; Ctrl-C stops it, the same line goes on");
  const auto flags = std::make_shared<RunFlags>();
  verb->add_option("--matrix", flags->matrix, "path of a matrix file, or the name of a shipped one")->required();
  verb->add_option("--db", flags->db, "database file; run folders are in <db>.runs, the log in <db>.log")
      ->capture_default_str()
      ->check(path_given());
  verb->add_option("--data", flags->data, "data folder (default: $SPT_DATA, else ./data)");
  verb->add_option("--device", flags->slots.device, "cpu, cuda (every GPU) or cuda:N,M,...")->capture_default_str();
  verb->add_option("--slots", flags->slots.slots, "stages trained at a time on CPU (default: cores / threads)");
  verb->add_option("--threads", flags->slots.threads, "CPU threads a slot")->capture_default_str();
  verb->add_option("--jobs-per-gpu", flags->slots.jobs_per_gpu, "stages trained at a time on each GPU")->capture_default_str();
  verb->add_option("--wall-s", flags->limits.wall_s, "longest run of one stage, seconds; 0: no limit")
      ->capture_default_str()
      ->check(not_negative());
  verb->add_option("--silence-s", flags->limits.silence_s, "longest time a stage may be silent, seconds; 0: no limit")
      ->capture_default_str()
      ->check(not_negative());
  verb->add_option("--memory-gib", flags->memory_gib, "memory of one worker, GiB; 0: no limit")
      ->capture_default_str()
      ->check(not_negative());
  verb->add_option("--keep", flags->keep, "checkpoints to keep when a stage is done")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "best"}));
  verb->add_option("--retry", flags->retry, "failure classes to run again beside those that always are")
      ->check(CLI::IsMember({"diverged", "data", "oom"}));
  verb->add_flag("--fail-fast", flags->fail_fast, "stop at the first failure");
  verb->add_option("--max-failures", flags->max_failures, "stop after so many failures; 0: never")
      ->capture_default_str()
      ->check(not_negative());
  verb->add_option("--checkpoint-s", flags->checkpoint_s, "seconds between checkpoints")->capture_default_str()->check(positive());
  verb->add_option("--prefetch", flags->prefetch_threads, "threads of a worker that prepare batches")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  verb->add_flag("--resume-across", flags->resume_across, "go on from checkpoints of another build or device kind");
  verb->add_flag("--no-probe", flags->no_probe, "estimate the time left from FLOPs, without training 3 steps of each model first");
  verb->add_flag("--no-report", flags->no_report, "print no tables at the end");
  verb->add_option("--worker", flags->worker, "worker program (default: spt-bench-worker beside this one)");
  verb->callback([flags, &context] { run_matrix(*flags, context); });
}

}  // namespace spt::cli
