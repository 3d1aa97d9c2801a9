// A worker without LibTorch that does what the name of its job's task says: the scheduler's tests need no training.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>
#include <vector>

#include "harness/base/file.h"
#include "harness/base/json.h"
#include "harness/catalog.h"
#include "results/journal.h"

namespace spt {
namespace {

struct Run {
  std::filesystem::path dir;
  RunRequest request;
  results::JournalWriter journal;
};

void start(Run& run) {
  results::StartEvent event;
  event.pid = ::getpid();
  const char* gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  const char* threads = std::getenv("OMP_NUM_THREADS");
  event.notes = {fmt::format("CUDA_VISIBLE_DEVICES={}", gpus ? gpus : "(unset)"),
                 fmt::format("OMP_NUM_THREADS={}", threads ? threads : "(unset)"), fmt::format("device={}", run.request.device)};
  write_file_atomically(run.dir / "seen.txt", fmt::format("{}\n{}\n{}\n", event.notes[0], event.notes[1], event.notes[2]));
  write_file_atomically(run.dir / "pid.txt", fmt::format("{}\n", ::getpid()));
  run.journal.write(0, event);
}

void finish(Run& run) {
  const int64_t steps = run.request.job.stages.at(run.request.stage).steps;
  if (!run.request.parent_dir.empty() && !std::filesystem::exists(run.dir / run.request.parent_dir / "best.safetensors")) {
    run.journal.write(0,
                      results::FailedEvent{.failure = results::Failure::kCrashed, .message = "no checkpoint to start from", .tensor = {}});
    std::exit(1);
  }
  write_file_atomically(run.dir / "best.safetensors", "model");
  write_file_atomically(run.dir / "last.safetensors", "model and optimizer");
  run.journal.write(
      steps, results::ProgressEvent{.loss = 0.5, .lr = 1e-3, .step_s = 0.01, .steps = steps, .metric = "accuracy", .metric_value = 0.5});
  results::DoneEvent done;
  done.selected_step = done.steps = steps;
  done.selected = {{.split = "test", .name = "accuracy", .value = 0.5, .n = 10},
                   {.split = "validation", .name = "accuracy", .value = 0.25, .n = 4}};
  done.reload_equal = true;
  run.journal.write(steps, done);
}

void beat_forever(Run& run) {
  for (int64_t step = 1;; ++step) {
    run.journal.write(step,
                      results::ProgressEvent{.loss = 1, .lr = 1e-3, .step_s = 0.02, .steps = 1'000'000, .metric = "", .metric_value = 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void sleep_forever(Run&) {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void grow(Run& run) {
  std::vector<std::vector<char>> blocks;
  for (int64_t step = 1;; ++step) {
    blocks.emplace_back(8 << 20, 'x');
    run.journal.write(step,
                      results::ProgressEvent{.loss = 1, .lr = 1e-3, .step_s = 0.02, .steps = 1'000'000, .metric = "", .metric_value = 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int act(Run& run) {
  const std::string& behaviour = run.request.job.task.name;
  if (behaviour == "exit") {
    std::cerr << "something odd happened\n";
    return 3;
  }
  if (behaviour == "segv") ::raise(SIGSEGV);
  if (behaviour == "kill") ::raise(SIGKILL);
  if (behaviour == "diverge") {
    run.journal.write(7,
                      results::FailedEvent{.failure = results::Failure::kDiverged, .message = "loss is nan at step 7", .tensor = "loss"});
    return 1;
  }
  if (behaviour == "silent") sleep_forever(run);
  if (behaviour == "slow") beat_forever(run);
  if (behaviour == "stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    beat_forever(run);
  }
  if (behaviour == "grow") grow(run);
  if (behaviour == "brief") std::this_thread::sleep_for(std::chrono::milliseconds(300));
  finish(run);
  return 0;
}

int run_request(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "request.json";
  const RunRequest request = run_request_from_json(parse_json(read_file(file), file.string()), file.string());
  Run run{dir, request, results::JournalWriter(dir / "journal.jsonl", request.stage_key, request.attempt)};
  start(run);
  return act(run);
}

}  // namespace
}  // namespace spt

int main(int count, char** arguments) {
  if (count != 3 || std::string(arguments[1]) != "run") return 64;
  return spt::run_request(arguments[2]);
}
