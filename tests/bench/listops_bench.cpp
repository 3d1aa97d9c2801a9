#include <benchmark/benchmark.h>

#include "tasks/formats/listops.h"

namespace spt::formats {
namespace {

/// items_per_second counts accepted examples; the published generator makes 453 a second (reference case listops_statistics).
void BM_GenerateListops(benchmark::State& state) {
  const int64_t examples = state.range(0);
  ListopsOptions options;
  for (auto _ : state) {
    ++options.seed;
    benchmark::DoNotOptimize(generate_listops(options, "train", examples));
  }
  state.SetItemsProcessed(state.iterations() * examples);
}
BENCHMARK(BM_GenerateListops)->Arg(2000)->Unit(benchmark::kMillisecond);

/// items_per_second counts trees; the published generator makes 14,100 a second.
void BM_DrawListopsTree(benchmark::State& state) {
  ListopsOptions options;
  options.max_length = 1 << 20;
  SplitMix64 generator(1);
  std::vector<uint8_t> tokens;
  for (auto _ : state) {
    tokens.clear();
    benchmark::DoNotOptimize(draw_listops_tree(options, generator, tokens));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DrawListopsTree);

}  // namespace
}  // namespace spt::formats
