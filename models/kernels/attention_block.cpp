#include "models/kernels/attention_block.h"

#include <initializer_list>

namespace spt::models {
namespace {

#ifdef __x86_64__
// Target pragmas and not target_clones: GCC lowers vectors to the base instruction set before it clones or inlines.
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define SPT_VARIANT attention_avx2
#define SPT_LANES 8
#define SPT_TILE_VECS 1
#include "models/kernels/attention_block_lanes.inc"
#undef SPT_VARIANT
#undef SPT_LANES
#undef SPT_TILE_VECS
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define SPT_VARIANT attention_avx512
#define SPT_LANES 16
#define SPT_TILE_VECS 2
#include "models/kernels/attention_block_lanes.inc"
#undef SPT_VARIANT
#undef SPT_LANES
#undef SPT_TILE_VECS
#pragma GCC pop_options
#endif

std::vector<AttentionKernels> runnable_attention_kernels() {
  std::vector<AttentionKernels> kernels;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back({"avx2", attention_avx2::scratch_size, attention_avx2::forward, attention_avx2::backward});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    kernels.push_back({"avx512", attention_avx512::scratch_size, attention_avx512::forward, attention_avx512::backward});
#endif
  return kernels;
}

}  // namespace

const std::vector<AttentionKernels>& attention_kernels() {
  static const std::vector<AttentionKernels> kernels = runnable_attention_kernels();
  return kernels;
}

}  // namespace spt::models
