#include "harness/schedule/supervisor.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <deque>
#include <fstream>
#include <list>
#include <map>
#include <numeric>

#include "harness/base/file.h"
#include "harness/base/json.h"
#include "harness/base/log.h"
#include "harness/schedule/child.h"
#include "harness/schedule/follower.h"

namespace spt::schedule {
namespace {

using Clock = std::chrono::steady_clock;
using results::Failure;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Kills by the kernel for want of memory, over the whole machine; -1 where it does not say.
int64_t kernel_oom_kills() {
  std::ifstream vmstat("/proc/vmstat");
  for (std::string line; std::getline(vmstat, line);)
    if (line.starts_with("oom_kill ")) return std::stoll(line.substr(9));
  return -1;
}

struct Verdict {
  Failure failure;
  std::string message;
};

struct Running {
  size_t task = 0;
  size_t slot = 0;
  int64_t attempt = 0;
  std::filesystem::path dir;
  std::unique_ptr<JournalFollower> journal;
  std::unique_ptr<Child> child;
  Clock::time_point started = Clock::now(), last_event = Clock::now();
  std::optional<Verdict> ours;  ///< why we ended it
  Clock::time_point kill_at = Clock::time_point::max();
  int64_t oom_kills = 0;
  std::optional<int> wait_status;
};

/// Why a worker ended that left no end in its journal.
Verdict judge(int wait_status, int64_t oom_kills_before, const std::filesystem::path& journal) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    if (number == SIGKILL && kernel_oom_kills() > oom_kills_before)
      return {Failure::kOom, "the kernel ended the worker for want of memory"};
    if (number == SIGKILL || number == SIGTERM || number == SIGINT)
      return {Failure::kKilled, fmt::format("the worker was ended by signal {} ({})", number, strsignal(number))};
    return {Failure::kCrashed, fmt::format("the worker crashed with signal {} ({})", number, strsignal(number))};
  }
  if (!std::filesystem::exists(journal))
    return {Failure::kCrashed, fmt::format("'{}' is gone: somebody removed the run folder while the stage ran", journal.string())};
  return {Failure::kCrashed, fmt::format("the worker ended with exit code {} and without a result", WEXITSTATUS(wait_status))};
}

}  // namespace

struct Supervisor::Impl {
  Impl(results::Store& s, RunOptions o, std::vector<StageTask> t, std::function<JobSpec(const std::string&)> f, Observer& watcher)
      : store(s), options(std::move(o)), tasks(std::move(t)), spec_of(std::move(f)), observer(watcher) {}

  results::Store& store;
  RunOptions options;
  std::vector<StageTask> tasks;
  std::function<JobSpec(const std::string&)> spec_of;
  Observer& observer;

  boost::asio::io_context context;
  boost::asio::signal_set signals{context, SIGINT, SIGTERM};
  std::unordered_map<std::string, size_t> task_of;                // key -> index
  std::unordered_map<std::string, std::vector<size_t>> children;  // parent key -> waiting tasks
  std::deque<size_t> ready;
  std::list<Running> running;
  std::vector<bool> slot_busy;
  RunSummary summary;
  Clock::time_point begun = Clock::now();
  bool stopping = false;
  double cost_done = 0, cost_seconds = 0;  // of the stages that are done, and the slot seconds they took

  std::filesystem::path dir_of(const std::string& key) const { return options.runs / key; }

  void enqueue() {
    for (size_t i = 0; i < tasks.size(); ++i) task_of[tasks[i].key] = i;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].parent.empty() && task_of.contains(tasks[i].parent)) children[tasks[i].parent].push_back(i);
      else ready.push_back(i);
    }
  }

  std::vector<std::string> environment(const Slot& slot) const {
    std::vector<std::string> list = {fmt::format("OMP_NUM_THREADS={}", slot.threads), "GOMP_SPINCOUNT=0",
                                     "CUBLAS_WORKSPACE_CONFIG=:4096:8"};
    list.push_back(slot.gpu < 0 ? "CUDA_VISIBLE_DEVICES=" : fmt::format("CUDA_VISIBLE_DEVICES={}", slot.gpu));
    return list;
  }

  void start(size_t index, size_t slot) {
    const StageTask& task = tasks[index];
    std::filesystem::create_directories(dir_of(task.key));
    Running run;
    run.task = index;
    run.slot = slot;
    run.dir = dir_of(task.key);
    run.attempt = store.begin_attempt(task.key);
    RunRequest request;
    request.job = spec_of(task.key);
    request.stage = task.stage;
    request.stage_key = task.key;
    request.attempt = run.attempt;
    if (!task.parent.empty()) request.parent_dir = "../" + task.parent;
    request.data_root = options.data_root.string();
    request.device = options.slots[slot].device;
    request.threads = options.slots[slot].threads;
    request.prefetch_threads = options.prefetch_threads;
    request.checkpoint_s = options.checkpoint_s;
    request.resume_across = options.resume_across;
    write_file_atomically(run.dir / "request.json", to_json(request).dump(2) + "\n");
    run.journal = std::make_unique<JournalFollower>(store, run.dir, task.key, run.attempt);
    run.oom_kills = kernel_oom_kills();
    running.push_back(std::move(run));
    Running& entry = running.back();
    const ChildOptions child{.program = options.worker,
                             .arguments = {"run", entry.dir.string()},
                             .log = entry.dir / "log.txt",
                             .environment = environment(options.slots[slot]),
                             .memory_limit = options.slots[slot].gpu < 0 ? options.limits.memory : 0};
    entry.child = std::make_unique<Child>(context, child, [&entry](int status) { entry.wait_status = status; });
    slot_busy[slot] = true;
    spdlog::info("start {} attempt {} on {} as process {}", task.label, entry.attempt, options.slots[slot].name(), entry.child->pid());
    observer.started(task, options.slots[slot]);
  }

  void fill_slots() {
    for (size_t slot = 0; slot < options.slots.size() && !ready.empty() && !stopping; ++slot) {
      if (slot_busy[slot]) continue;
      const size_t index = ready.front();
      ready.pop_front();
      start(index, slot);
    }
  }

  void end_worker(Running& run, Failure failure, std::string message) {
    if (run.ours) return;
    run.ours = Verdict{failure, std::move(message)};
    run.child->signal(SIGTERM);
    run.kill_at = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * options.limits.stop_s));
  }

  void check_limits(Running& run) {
    const Limits& limits = options.limits;
    if (Clock::now() > run.kill_at) run.child->signal(SIGKILL);
    if (limits.wall_s > 0 && seconds_since(run.started) > limits.wall_s)
      end_worker(run, Failure::kTimeout, fmt::format("ran longer than the limit of {} s", limits.wall_s));
    if (limits.silence_s > 0 && seconds_since(run.last_event) > limits.silence_s)
      end_worker(run, Failure::kHung, fmt::format("no event for {} s", limits.silence_s));
    if (limits.memory > 0) {
      const int64_t resident = run.child->resident_bytes();
      if (resident > limits.memory)
        end_worker(run, Failure::kOom, fmt::format("{} bytes of memory are over the limit of {}", resident, limits.memory));
    }
  }

  void stop() {
    stopping = summary.stopped = true;
    for (Running& run : running) end_worker(run, Failure::kKilled, "stopped with the run");
  }

  void block_children(const std::string& key, const std::string& label) {
    const auto waiting = children.find(key);
    if (waiting == children.end()) return;
    std::vector<size_t> blocked;
    for (const size_t child : waiting->second) {
      const std::string message = fmt::format("its pretraining failed: {}", label);
      store.block(tasks[child].key, message);
      observer.ended(tasks[child], "blocked", message, 0);
      ++summary.blocked;
      blocked.push_back(child);
    }
    children.erase(waiting);
    for (const size_t child : blocked) block_children(tasks[child].key, label);
  }

  void remove_checkpoints(const StageTask& task) {
    std::error_code ignored;  // a checkpoint that cannot be removed costs space, nothing else
    std::filesystem::remove(dir_of(task.key) / "last.safetensors", ignored);
    if (options.keep == Keep::kNone && !task.pretraining) std::filesystem::remove(dir_of(task.key) / "best.safetensors", ignored);
  }

  /// A pretraining checkpoint goes when no planned job is left that starts from it, of this run or of another matrix.
  void release_parent(const StageTask& task) {
    if (task.parent.empty() || options.keep != Keep::kNone || store.is_needed(task.parent)) return;
    std::error_code ignored;
    std::filesystem::remove(dir_of(task.parent) / "best.safetensors", ignored);
  }

  void succeed(const Running& run) {
    const StageTask& task = tasks[run.task];
    ++summary.done;
    remove_checkpoints(task);
    release_parent(task);
    cost_done += task.cost;
    cost_seconds += seconds_since(run.started);
    observer.ended(task, "done", "", seconds_since(run.started));
    if (const auto waiting = children.find(task.key); waiting != children.end()) {
      ready.insert(ready.begin(), waiting->second.begin(), waiting->second.end());
      children.erase(waiting);
    }
  }

  void fail(const Running& run) {
    const StageTask& task = tasks[run.task];
    const auto& own = run.journal->failed();
    Verdict verdict = run.ours ? *run.ours
                      : own    ? Verdict{own->failure, own->message}
                               : judge(*run.wait_status, run.oom_kills, run.dir / "journal.jsonl");
    store.fail_attempt(task.key, run.attempt, verdict.failure, verdict.message, log_tail(run.dir / "log.txt"));
    if (stopping && run.ours && verdict.failure == Failure::kKilled) {  // no failure of the stage: it is left for the next run
      spdlog::info("{} {}", task.label, verdict.message);
      return observer.ended(task, "stopped", verdict.message, seconds_since(run.started));
    }
    const std::string name(results::failure_name(verdict.failure));
    spdlog::warn("{} {}: {}", task.label, name, verdict.message);
    ++summary.failed;
    summary.failures.emplace_back(task.label, fmt::format("{}: {}", name, verdict.message));
    observer.ended(task, name, verdict.message, seconds_since(run.started));
    if (stopping) return;
    block_children(task.key, task.label);
    if (options.fail_fast || (options.max_failures > 0 && summary.failed >= options.max_failures)) stop();
  }

  void settle_ended() {
    for (auto run = running.begin(); run != running.end();) {
      if (!run->wait_status) {
        ++run;
        continue;
      }
      while (run->journal->poll()) {
      }
      slot_busy[run->slot] = false;
      const auto ended = run++;
      std::list<Running> taken;
      taken.splice(taken.begin(), running, ended);
      if (taken.front().journal->done()) succeed(taken.front());
      else fail(taken.front());
    }
  }

  double stage_eta(const Running& run) const {
    const auto& progress = run.journal->progress();
    if (!progress || progress->step_s <= 0) return -1;
    return static_cast<double>(progress->steps - run.journal->step()) * progress->step_s;
  }

  /// What is left at the pace so far, in cost per slot second; below 0 while there is no pace.
  double run_eta() const {
    double left = 0, made = cost_done, seconds = cost_seconds;
    for (const Running& run : running) {
      const auto& progress = run.journal->progress();
      const double part =
          progress && progress->steps > 0 ? static_cast<double>(run.journal->step()) / static_cast<double>(progress->steps) : 0;
      left += tasks[run.task].cost * (1 - part);
      made += tasks[run.task].cost * part;
      seconds += seconds_since(run.started);
    }
    for (const size_t i : ready) left += tasks[i].cost;
    for (const auto& [parent, waiting] : children)
      for (const size_t i : waiting) left += tasks[i].cost;
    return made > 0 ? left * seconds / made / static_cast<double>(options.slots.size()) : -1;
  }

  void show() {
    ProgressView view{.done = summary.done,
                      .failed = summary.failed + summary.blocked,
                      .total = static_cast<int64_t>(tasks.size()),
                      .eta_s = run_eta(),
                      .elapsed_s = seconds_since(begun),
                      .running = {}};
    for (const Running& run : running) {
      RunningView row{.label = tasks[run.task].label, .slot = options.slots[run.slot].name(), .step = run.journal->step(), .metric = {}};
      if (const auto& progress = run.journal->progress()) {
        row.steps = progress->steps;
        row.loss = progress->loss;
        row.metric = progress->metric;
        row.metric_value = progress->metric_value;
      }
      row.eta_s = stage_eta(run);
      view.running.push_back(std::move(row));
    }
    observer.progress(view);
  }

  void tick() {
    for (Running& run : running) {
      if (run.journal->poll()) run.last_event = Clock::now();
      if (!run.wait_status) check_limits(run);
    }
    settle_ended();
    fill_slots();
    show();
  }

  void wait_for_signal() {
    signals.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info("signal {}: stopping", number);
      stop();
      wait_for_signal();
    });
  }

  RunSummary run() {
    enqueue();
    slot_busy.assign(options.slots.size(), false);
    wait_for_signal();
    fill_slots();
    while (!running.empty() || (!ready.empty() && !stopping)) {
      context.run_one_for(options.poll);  // an exit, a signal or the time
      context.poll();
      tick();
    }
    summary.left = static_cast<int64_t>(tasks.size()) - summary.done - summary.failed - summary.blocked;
    return summary;
  }
};

Supervisor::Supervisor(results::Store& store, RunOptions options, std::vector<StageTask> tasks,
                       std::function<JobSpec(const std::string& key)> spec_of, Observer& observer)
    : impl_(std::make_unique<Impl>(store, std::move(options), std::move(tasks), std::move(spec_of), observer)) {
  SPT_CHECK(!impl_->options.slots.empty(), "a run needs a slot");
}

Supervisor::~Supervisor() = default;

RunSummary Supervisor::run() { return impl_->run(); }

int64_t recover(results::Store& store, const std::filesystem::path& runs) {
  int64_t count = 0;
  for (const auto& [key, state] : store.stage_states()) {
    if (state.status != "running") continue;
    JournalFollower journal(store, runs / key, key, state.attempts);
    while (journal.poll()) {
    }
    ++count;
    if (journal.done()) continue;
    const auto& failed = journal.failed();
    store.fail_attempt(key, state.attempts, failed ? failed->failure : Failure::kKilled,
                       failed ? failed->message : "the run that had started it ended before it did", log_tail(runs / key / "log.txt"));
  }
  return count;
}

}  // namespace spt::schedule
