#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/base/file.h"
#include "harness/base/json.h"
#include "harness/catalog.h"
#include "harness/worker/process.h"
#include "harness/worker/runner.h"
#include "results/journal.h"
#include "tests/worker/doubles.h"

namespace spt::worker::test {

/// Folders of the stages of one job below a fresh one.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : root_(std::filesystem::path(testing::TempDir()) / fmt::format("spt-runner-{}-{}", name, ::getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    set_stop_requested(false);
    spdlog::set_level(spdlog::level::off);
  }
  ~Folder() { std::filesystem::remove_all(root_); }

  std::filesystem::path stage(int64_t index) const { return root_ / fmt::format("stage{}", index); }

  bool run(const JobSpec& job, int64_t index, const std::function<void(RunRequest&)>& change = {}) {
    RunRequest request;
    request.job = job;
    request.stage = index;
    request.stage_key = stage_key(job, static_cast<size_t>(index));
    request.attempt = ++attempt_;
    request.parent_dir = index > 0 ? fmt::format("../stage{}", index - 1) : "";
    request.checkpoint_s = 1000;
    request.heartbeat_s = 1000;
    if (change) change(request);
    std::filesystem::create_directories(stage(index));
    write_file_atomically(stage(index) / "request.json", canonical(to_json(request)));
    return run_stage(stage(index), tiny_registry());
  }

  std::vector<results::JournalLine> lines(int64_t index) const {
    const results::JournalTail tail = results::read_journal(stage(index) / "journal.jsonl", 0);
    EXPECT_TRUE(tail.problems.empty());
    return tail.lines;
  }
  template <class E>
  std::vector<E> events(int64_t index) const {
    std::vector<E> found;
    for (const results::JournalLine& line : lines(index))
      if (const E* event = std::get_if<E>(&line.event)) found.push_back(*event);
    return found;
  }
  results::DoneEvent done(int64_t index) const {
    const auto all = events<results::DoneEvent>(index);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? results::DoneEvent{} : all.back();
  }
  std::string best_bytes(int64_t index) const { return read_file(stage(index) / "best.safetensors"); }

 private:
  const std::filesystem::path root_;
  int64_t attempt_ = 0;
};

}  // namespace spt::worker::test
