// kill -9 of worker and supervisor at random points: the same final numbers, bit for bit, as a run that nobody disturbed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "results/store.h"
#include "tests/e2e/program.h"

namespace spt::e2e {
namespace {

using Clock = std::chrono::steady_clock;

/// Where a kill is to land.
enum class Point { kPretraining, kFinetuning, kCheckpoint, kIngest, kAnywhere };
constexpr Point kPoints[] = {Point::kPretraining, Point::kFinetuning, Point::kCheckpoint, Point::kIngest, Point::kAnywhere};
constexpr const char* kPointNames[] = {"inside pretraining", "inside fine-tuning", "during a checkpoint write", "during an ingest",
                                       "anywhere"};

/// Waits for changes of files in folders.
class Watch {
 public:
  Watch() : descriptor_(::inotify_init1(IN_NONBLOCK)) {}
  ~Watch() { ::close(descriptor_); }
  void add(const std::filesystem::path& folder) {
    if (seen_.insert(folder).second) ::inotify_add_watch(descriptor_, folder.c_str(), IN_CREATE | IN_MODIFY);
  }
  /// Whether a file whose name contains `part` was made or written within `timeout`.
  bool wait(const std::string& part, std::chrono::milliseconds timeout) {
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) return false;
    alignas(inotify_event) char buffer[16384];
    const ssize_t size = ::read(descriptor_, buffer, sizeof buffer);
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      if (event->len > 0 && std::string(event->name).find(part) != std::string::npos) return true;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return false;
  }

 private:
  int descriptor_;
  std::set<std::filesystem::path> seen_;
};

struct Outcome {
  std::map<std::string, std::string> results;  // job -> numbers, exactly
  std::map<std::string, double> curve;
};

std::string exact(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return fmt::format("{:016x}", bits);
}

Outcome read_outcome(const std::filesystem::path& db) {
  const results::Store store(db, results::Store::Mode::kReadOnly);
  Outcome outcome;
  for (const results::MatrixRow& matrix : store.matrices()) {
    for (const results::ResultRow& row : store.results(matrix.id)) {
      std::string text = row.status;
      for (const auto& value : {row.test, row.validation, row.last_validation}) text += value ? " " + exact(*value) : " none";
      text += fmt::format(" {} {} {} {} {}", row.steps, row.examples, row.tokens, exact(row.flops), row.parameters);
      for (const float score : store.scores(row.job_key, "test")) text += exact(score);
      EXPECT_TRUE(outcome.results.emplace(row.name + " " + row.job_key, text).second) << "job twice: " << row.name;
    }
    const results::Curves curves = store.curves(matrix.id);
    for (const results::CurvePoint& point : curves.points) {
      const results::Curve& curve = curves.curves[point.curve];
      const std::string name =
          fmt::format("{}/{}/{}/{}/{}/{}", curve.job_key, curve.stage_key, curve.stage, curve.split, curve.metric, point.step);
      EXPECT_TRUE(outcome.curve.emplace(name, point.value).second) << name;
    }
  }
  return outcome;
}

class Killer {
 public:
  Killer(std::filesystem::path folder, uint64_t seed) : folder_(std::move(folder)), draw_(seed) {}

  std::vector<std::string> arguments() const { return {"run", "--matrix", "smoke", "--db", db().string(), "--slots", "2", "--no-probe"}; }
  std::filesystem::path db() const { return folder_ / "k.db"; }

  /// Runs until a kill lands at `point`, or the run ends by itself. Answers whether a kill landed.
  bool strike(Point point) {
    Program program(arguments(), folder_ / "out.txt");
    Watch watch;
    watch.add(folder_);
    const auto pause = std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 400)(draw_));
    const auto earliest = Clock::now() + (point == Point::kAnywhere ? 4 * pause : pause);
    while (!program.ended()) {
      const auto workers = workers_of(program.pid());
      for (const auto& [pid, dir] : workers) watch.add(dir);
      const std::string part = point == Point::kCheckpoint ? ".safetensors.tmp" : point == Point::kIngest ? "-wal" : "journal.jsonl";
      const bool touched = watch.wait(part, std::chrono::milliseconds(5));
      if (Clock::now() < earliest) continue;
      if (const pid_t victim = choose(point, touched, workers, program.pid()); victim > 0) {
        ::kill(victim, SIGKILL);
        // A killed worker is a row that the supervisor still has to write; then it goes too, or it would finish the sweep undisturbed.
        if (victim != program.pid())
          std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 800)(draw_)));
        program.kill(SIGKILL);
        program.wait(30);
        return true;
      }
    }
    return false;
  }

  int finish() { return run_program(arguments(), folder_ / "out.txt", 300); }

 private:
  pid_t choose(Point point, bool touched, const std::map<pid_t, std::filesystem::path>& workers, pid_t supervisor) {
    const bool coin = std::bernoulli_distribution(0.5)(draw_);
    if (point == Point::kAnywhere) return coin || workers.empty() ? supervisor : workers.begin()->first;
    if (!touched) return 0;
    if (point == Point::kIngest) return supervisor;
    if (point == Point::kCheckpoint) return workers.empty() ? 0 : coin ? supervisor : workers.begin()->first;
    for (const auto& [pid, dir] : workers)
      if (stage_name(dir) == (point == Point::kPretraining ? "pretrain" : "finetune")) return coin ? pid : supervisor;
    return 0;
  }

  std::filesystem::path folder_;
  std::mt19937_64 draw_;
};

TEST(Kill, AtTwentyRandomPointsChangesNoNumberAndLosesNoRow) {
  const uint64_t seed = std::getenv("SPT_KILL_SEED") ? std::stoull(std::getenv("SPT_KILL_SEED")) : std::random_device{}();
  std::cout << "seed " << seed << " (SPT_KILL_SEED repeats it)\n";
  const std::filesystem::path quiet = fresh_folder("kill-quiet");
  ASSERT_EQ(
      run_program({"run", "--matrix", "smoke", "--db", (quiet / "k.db").string(), "--slots", "2", "--no-probe"}, quiet / "out.txt", 300),
      0);
  const Outcome expected = read_outcome(quiet / "k.db");
  ASSERT_FALSE(expected.results.empty());

  std::map<Point, int> landed;
  int kills = 0;
  for (int round = 0; kills < 20 && round < 12; ++round) {
    Killer killer(fresh_folder("kill"), seed + static_cast<uint64_t>(round));
    while (kills < 20) {
      const Point point = kPoints[kills % std::size(kPoints)];
      if (!killer.strike(point)) break;
      ++kills, ++landed[point];
    }
    ASSERT_EQ(killer.finish(), 0) << "round " << round;
    const Outcome outcome = read_outcome(killer.db());
    EXPECT_EQ(outcome.results, expected.results) << "round " << round;
    EXPECT_EQ(outcome.curve, expected.curve) << "round " << round;
  }
  EXPECT_EQ(kills, 20);
  for (const Point point : kPoints) EXPECT_GT(landed[point], 0) << "no kill landed " << kPointNames[static_cast<int>(point)];
}

}  // namespace
}  // namespace spt::e2e
