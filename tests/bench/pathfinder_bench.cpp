#include <benchmark/benchmark.h>

#include "tasks/formats/pathfinder.h"

namespace spt::formats {
namespace {

/// items_per_second counts images; the published generator makes 5.5 (side 32), 0.36 (128) and 5.8 (256) a second (reference case
/// pathfinder_statistics).
void BM_GeneratePathfinder(benchmark::State& state) {
  const PathfinderGenerator generator(pathfinder_options(state.range(0)), 1);
  uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(generator.image(i++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_GeneratePathfinder)->Arg(32)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spt::formats
