#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "reports/curves.h"
#include "reports/report.h"
#include "results/journal.h"
#include "results/store.h"

namespace spt::results {
namespace {

// A database of `jobs` done jobs with `points` evaluations of four series each, removed at the end of the program.
class StoreBenchFile {
 public:
  StoreBenchFile(int64_t jobs, int64_t points)
      : file_(std::filesystem::temp_directory_path() / fmt::format("store_bench_{}_{}_{}.db", ::getpid(), jobs, points)) {
    Store store(file_, Store::Mode::kReadWrite);
    std::vector<PlannedJob> planned;
    std::vector<PlannedStage> stages;
    for (int64_t i = 0; i < jobs; ++i) {
      PlannedJob job;
      job.key = sha256(std::to_string(i));
      job.seed = static_cast<uint64_t>(i % 5);
      job.task = fmt::format("task-{}", i / 50);
      job.architecture = fmt::format("architecture-{}", i / 5 % 10);
      job.arm = "scratch@F";
      job.arm_kind = "scratch";
      job.name = fmt::format("{}/{}/{}/seed={}", job.task, job.architecture, job.arm, job.seed);
      job.metric = "accuracy";
      job.stages = {job.key};
      planned.push_back(job);
      stages.push_back({job.key, "finetune", "", std::string(2000, 'x'), 0});
    }
    MatrixRow matrix;
    matrix.id = "bench";
    store.record_plan(matrix, planned, stages);
    std::vector<JournalLine> lines;
    for (const PlannedJob& job : planned) {
      const std::vector<JournalLine> more = journal_of(job.key, points);
      lines.insert(lines.end(), more.begin(), more.end());
      if (lines.size() > 20000) {
        store.ingest(lines);
        lines.clear();
      }
    }
    store.ingest(lines);
  }
  ~StoreBenchFile() {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file_.string() + end);
  }
  const std::filesystem::path& path() const { return file_; }

  static std::vector<JournalLine> journal_of(const std::string& key, int64_t points) {
    std::vector<JournalLine> lines = {{key, 1, 0, 0, 0, StartEvent{}}};
    for (int64_t k = 1; k <= points; ++k) {
      const double value = 1.0 / static_cast<double>(k);
      lines.push_back({key, 1, k, k, 0,
                       EvaluationEvent{k,
                                       {{"validation", "accuracy", value, 500},
                                        {"validation", "loss", value, 500},
                                        {"train", "accuracy", value, 500},
                                        {"train", "loss", value, 500}}}});
    }
    DoneEvent done;
    done.selected_step = done.steps = points;
    done.selected = {{"test", "accuracy", 0.5, 10000}};
    lines.push_back({key, 1, points + 1, points, 0, done});
    return lines;
  }

 private:
  std::filesystem::path file_;
};

const StoreBenchFile& jobs_10k() {
  static const StoreBenchFile file(10000, 1);
  return file;
}

const StoreBenchFile& metrics_1m() {
  static const StoreBenchFile file(2500, 100);
  return file;
}

/// Target: < 50 ms, opening included.
void BM_StatusOf10kJobs(benchmark::State& state) {
  const std::filesystem::path& file = jobs_10k().path();
  for (auto _ : state) benchmark::DoNotOptimize(Store(file, Store::Mode::kReadOnly).status("bench"));
}
BENCHMARK(BM_StatusOf10kJobs)->Unit(benchmark::kMillisecond);

void BM_ResultsOf10kJobs(benchmark::State& state) {
  const std::filesystem::path& file = jobs_10k().path();
  for (auto _ : state) benchmark::DoNotOptimize(Store(file, Store::Mode::kReadOnly).results("bench"));
}
BENCHMARK(BM_ResultsOf10kJobs)->Unit(benchmark::kMillisecond);

/// What a report reads.
void BM_ReadReportOf1MMetrics(benchmark::State& state) {
  const std::filesystem::path& file = metrics_1m().path();
  for (auto _ : state) {
    const Store store(file, Store::Mode::kReadOnly);
    benchmark::DoNotOptimize(store.results("bench"));
    benchmark::DoNotOptimize(store.curves("bench", {{"pretrain", "loss"}, {"finetune", "accuracy"}}));
  }
  state.SetItemsProcessed(state.iterations() * 1000000);
}
BENCHMARK(BM_ReadReportOf1MMetrics)->Unit(benchmark::kMillisecond);

/// All of `spt-bench report --out`: reading, tables, figures of 50 tasks (argument 1; drawn by gnuplot) or none (0), files. Target: < 1 s.
void BM_WriteReportOf1MMetrics(benchmark::State& state) {
  const std::filesystem::path& file = metrics_1m().path();
  const std::filesystem::path folder = file.string() + ".report";
  for (auto _ : state) {
    const Store store(file, Store::Mode::kReadOnly);
    reports::ReportInput input{.matrix = store.matrices().front(), .rows = store.results("bench"), .curves = {}};
    if (state.range(0) == 1) input.curves = store.curves("bench", reports::drawn_curves(input.rows));
    reports::write_report(reports::build_report(input, {.figures = state.range(0) == 1}), folder);
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_WriteReportOf1MMetrics)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// items_per_second: journal lines of one job at a time, each ingest a transaction, text included.
void BM_IngestJournals(benchmark::State& state) {
  const StoreBenchFile file(2000, 0);
  Store store(file.path(), Store::Mode::kReadWrite);
  int64_t job = 0, lines = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<std::string> text;
    for (const JournalLine& line : StoreBenchFile::journal_of(sha256(std::to_string(job++ % 2000)), 20)) text.push_back(format_line(line));
    lines += static_cast<int64_t>(text.size());
    state.ResumeTiming();
    std::vector<JournalLine> parsed;
    for (const std::string& line : text) parsed.push_back(parse_line(line, "journal"));
    store.ingest(parsed);
  }
  state.SetItemsProcessed(lines);
}
BENCHMARK(BM_IngestJournals)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace spt::results
