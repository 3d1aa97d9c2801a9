// Planning 100,000 jobs with a warm cache (an in-process worker stands for it): 20,000 cells of 5 seeds.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "harness/plan.h"
#include "harness/work.h"
#include "tests/harness/fake_catalog.h"

namespace spt {
namespace {

std::string large_matrix(int64_t architectures, int64_t tasks) {
  std::string text =
      "name = \"large\"\nseeds = { first = 1, count = 5 }\nprotocols = [\"scratch\", \"spt-masked\"]\n"
      "[budget]\nfinetune = { steps = 400 }\npretrain = { steps = 1200 }\nmatch = [\"steps\", \"flops\"]\n";
  for (int64_t i = 0; i < architectures; ++i)
    text += fmt::format("[[architecture]]\nname = \"transformer\"\nlabel = \"a{}\"\noptions = {{ d_model = {} }}\n", i, i + 1);
  for (int64_t i = 0; i < tasks; ++i)
    text += fmt::format("[[task]]\nname = \"fashion\"\nlabel = \"t{}\"\noptions = {{ patch = {} }}\n", i, i + 1);
  return text;
}

void plan_jobs(benchmark::State& state) {
  const std::string text = large_matrix(state.range(0), state.range(1));
  testing_catalog::FakeWorker worker;
  size_t jobs = 0;
  for (auto _ : state) {
    worker.asked_models.clear();
    const Plan plan = plan_matrix(parse_matrix(text, "large.toml"), worker, "data");
    const Work work = work_left(plan, {});
    benchmark::DoNotOptimize(work.run.data());
    jobs = plan.job_count();
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["jobs"] = static_cast<double>(jobs);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK(plan_jobs)->Args({50, 98})->Args({500, 10})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spt
