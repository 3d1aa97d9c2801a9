#include "models/kernels/selective_scan.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "harness/base/error.h"

namespace spt::models {
namespace {

constexpr int64_t kLanes = 32;      ///< channels of one task; they are the vector of every inner loop
constexpr int64_t kKeepEvery = 32;  ///< positions from one kept state to the next

[[gnu::always_inline]] inline double lane_exp(double x) { return std::exp(x); }

/// exp in arithmetic that vectorises: 2^n p(r) with |r| <= log(2) / 2; within 2e-7, clamped to normal numbers.
[[gnu::always_inline]] inline float lane_exp(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 2^23: adding it rounds to an integer, which stands in the low bits
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float shifted = x * 1.44269504f + kRounder, n = shifted - kRounder;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder) + 127;
  return p * std::bit_cast<float>(exponent << 23);
}

/// Sum of the lanes, in an order that no vector width changes; destroys them.
template <class T>
[[gnu::always_inline]] inline T fold_lanes(T* v) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int64_t j = 0; j < half; ++j) v[j] += v[j + half];
  }
  return v[0];
}

/// One row and block of channels. Pointers stand at the row's first position; u, dt, y and their gradients have stride E.
template <class T>
struct SelectiveTask {
  int64_t length, E, N, first, width;
  const T *u, *dt, *A, *B, *C;  ///< A: (E, N) at the block's first channel
  T *y, *kept;                  ///< kept: (ceil(length / kKeepEvery), N, kLanes)
  const T* gy;
  T *gu, *gdt, *gA, *gB, *gC;  ///< gA (E, N) of this row at the block's first channel; gB, gC (length, N) of this task
};

/// The block's channels at one position, unused lanes 0.
template <class T>
[[gnu::always_inline]] inline void load_lanes(const SelectiveTask<T>& task, const T* from, int64_t t, T* lanes) {
  std::copy_n(from + t * task.E + task.first, task.width, lanes);
}

template <class T>
[[gnu::always_inline]] inline void store_lanes(const SelectiveTask<T>& task, const T* lanes, int64_t t, T* to) {
  std::copy_n(lanes, task.width, to + t * task.E + task.first);
}

/// (N, kLanes) of the block's rows of A.
template <class T>
[[gnu::always_inline]] inline void load_matrix(const SelectiveTask<T>& task, T* A) {
  for (int64_t n = 0; n < task.N; ++n)
    for (int64_t j = 0; j < kLanes; ++j) A[n * kLanes + j] = j < task.width ? task.A[j * task.N + n] : T(0);
}

template <class T>
[[gnu::always_inline]] inline void selective_forward(const SelectiveTask<T>& task, T* A, T* h) {
  load_matrix(task, A);
  std::fill_n(h, task.N * kLanes, T(0));
  T dt[kLanes] = {}, u[kLanes] = {}, y[kLanes];
  for (int64_t t = 0; t < task.length; ++t) {
    if (t % kKeepEvery == 0) std::copy_n(h, task.N * kLanes, task.kept + t / kKeepEvery * task.N * kLanes);
    load_lanes(task, task.dt, t, dt);
    load_lanes(task, task.u, t, u);
    std::fill_n(y, kLanes, T(0));
    for (int64_t n = 0; n < task.N; ++n) {
      const T B = task.B[t * task.N + n], C = task.C[t * task.N + n];
      const T* A_n = A + n * kLanes;
      T* h_n = h + n * kLanes;
#pragma omp simd
      for (int64_t j = 0; j < kLanes; ++j) {
        h_n[j] = lane_exp(dt[j] * A_n[j]) * h_n[j] + dt[j] * u[j] * B;
        y[j] += C * h_n[j];
      }
    }
    store_lanes(task, y, t, task.y);
  }
}

/// Decays and states of `count` positions from `begin`: decay (count, N, kLanes), states (count + 1, N, kLanes), the first the kept one.
template <class T>
[[gnu::always_inline]] inline void selective_recompute(const SelectiveTask<T>& task, int64_t begin, int64_t count, const T* A, T* decay,
                                                       T* states) {
  const int64_t size = task.N * kLanes;
  std::copy_n(task.kept + begin / kKeepEvery * size, size, states);
  T dt[kLanes] = {}, u[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    load_lanes(task, task.dt, begin + i, dt);
    load_lanes(task, task.u, begin + i, u);
    for (int64_t n = 0; n < task.N; ++n) {
      const T B = task.B[(begin + i) * task.N + n];
      const T *A_n = A + n * kLanes, *before = states + i * size + n * kLanes;
      T *decay_n = decay + i * size + n * kLanes, *after = states + (i + 1) * size + n * kLanes;
#pragma omp simd
      for (int64_t j = 0; j < kLanes; ++j) {
        decay_n[j] = lane_exp(dt[j] * A_n[j]);
        after[j] = decay_n[j] * before[j] + dt[j] * u[j] * B;
      }
    }
  }
}

/// One position backwards: g is the gradient of h_t that comes from later positions, and leaves as that of h_{t-1}.
template <class T>
[[gnu::always_inline]] inline void selective_backward_step(const SelectiveTask<T>& task, int64_t t, const T* A, const T* decay,
                                                           const T* before, const T* after, T* g, T* gA) {
  T dt[kLanes] = {}, u[kLanes] = {}, gy[kLanes] = {}, gu[kLanes] = {}, gdt[kLanes] = {}, in[kLanes], out[kLanes];
  load_lanes(task, task.dt, t, dt);
  load_lanes(task, task.u, t, u);
  load_lanes(task, task.gy, t, gy);
  for (int64_t n = 0; n < task.N; ++n) {
    const int64_t at = n * kLanes;
    const T B = task.B[t * task.N + n], C = task.C[t * task.N + n];
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) {
      const T gh = g[at + j] + gy[j] * C, gx = gh * decay[at + j], through = gx * before[at + j];
      out[j] = gy[j] * after[at + j];
      in[j] = gh * dt[j] * u[j];
      gu[j] += gh * dt[j] * B;
      gdt[j] += gh * u[j] * B + through * A[at + j];
      gA[at + j] += through * dt[j];
      g[at + j] = gx;
    }
    task.gB[t * task.N + n] = fold_lanes(in);
    task.gC[t * task.N + n] = fold_lanes(out);
  }
  store_lanes(task, gu, t, task.gu);
  store_lanes(task, gdt, t, task.gdt);
}

/// `room`: space for A, g and gA (N, kLanes each), decays and states.
template <class T>
[[gnu::always_inline]] inline void selective_backward(const SelectiveTask<T>& task, T* room) {
  const int64_t size = task.N * kLanes;
  T *A = room, *g = A + size, *gA = g + size, *decay = gA + size, *states = decay + kKeepEvery * size;
  load_matrix(task, A);
  std::fill_n(g, 2 * size, T(0));
  for (int64_t chunk = (task.length - 1) / kKeepEvery; chunk >= 0; --chunk) {
    const int64_t begin = chunk * kKeepEvery, count = std::min(kKeepEvery, task.length - begin);
    selective_recompute(task, begin, count, A, decay, states);
    for (int64_t i = count - 1; i >= 0; --i)
      selective_backward_step(task, begin + i, A, decay + i * size, states + i * size, states + (i + 1) * size, g, gA);
  }
  for (int64_t j = 0; j < task.width; ++j)
    for (int64_t n = 0; n < task.N; ++n) task.gA[j * task.N + n] = gA[n * kLanes + j];
}

// One clone an instruction set of the two precisions.
#define SPT_SELECTIVE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
SPT_SELECTIVE_CLONES void run_selective(const SelectiveTask<float>& task, float* room) {
  selective_forward(task, room, room + task.N * kLanes);
}
SPT_SELECTIVE_CLONES void run_selective(const SelectiveTask<double>& task, double* room) {
  selective_forward(task, room, room + task.N * kLanes);
}
SPT_SELECTIVE_CLONES void run_selective_backward(const SelectiveTask<float>& task, float* room) { selective_backward(task, room); }
SPT_SELECTIVE_CLONES void run_selective_backward(const SelectiveTask<double>& task, double* room) { selective_backward(task, room); }
#undef SPT_SELECTIVE_CLONES

int64_t selective_blocks(int64_t channels) { return (channels + kLanes - 1) / kLanes; }

/// Calls run(row, block, room) for every row and block of channels, in parallel; room has space for `states` times (N, kLanes) numbers.
template <class T, class Run>
void for_selective_blocks(const SelectiveScanInput& in, int64_t states, Run&& run) {
  const int64_t blocks = selective_blocks(in.u.size(2));
  at::parallel_for(0, in.u.size(0) * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> room(static_cast<size_t>(states * in.A.size(1) * kLanes));
    for (int64_t i = begin; i < end; ++i) run(i / blocks, i % blocks, room.data());
  });
}

template <class T>
SelectiveTask<T> selective_task(const SelectiveScanInput& in, const at::Tensor& kept, int64_t row, int64_t block) {
  const int64_t L = in.u.size(1), E = in.u.size(2), N = in.A.size(1), first = block * kLanes;
  SelectiveTask<T> task = {};
  task.length = L, task.E = E, task.N = N, task.first = first, task.width = std::min(kLanes, E - first);
  task.u = in.u.const_data_ptr<T>() + row * L * E;
  task.dt = in.dt.const_data_ptr<T>() + row * L * E;
  task.A = in.A.const_data_ptr<T>() + first * N;
  task.B = in.B.const_data_ptr<T>() + row * L * N;
  task.C = in.C.const_data_ptr<T>() + row * L * N;
  task.kept = kept.mutable_data_ptr<T>() + (row * kept.size(1) + block) * kept.size(2);
  return task;
}

/// y, and the kept states (B, blocks, states of a task).
std::pair<at::Tensor, at::Tensor> selective_on_cpu(const SelectiveScanInput& in) {
  const int64_t rows = in.u.size(0), L = in.u.size(1), E = in.u.size(2), N = in.A.size(1);
  at::Tensor y = at::empty_like(in.u);
  at::Tensor kept = at::empty({rows, selective_blocks(E), (L + kKeepEvery - 1) / kKeepEvery * N * kLanes}, in.u.options());
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "selective_scan", [&] {
    for_selective_blocks<scalar_t>(in, 2, [&](int64_t row, int64_t block, scalar_t* room) {
      auto task = selective_task<scalar_t>(in, kept, row, block);
      task.y = y.mutable_data_ptr<scalar_t>() + row * L * E;
      run_selective(task, room);
    });
  });
  return {y, kept};
}

/// Gradients of u, dt, A, B, C.
torch::autograd::variable_list selective_gradients(const SelectiveScanInput& in, const at::Tensor& kept, const at::Tensor& gy) {
  const int64_t rows = in.u.size(0), L = in.u.size(1), E = in.u.size(2), N = in.A.size(1), blocks = selective_blocks(E);
  at::Tensor gu = at::empty_like(in.u), gdt = at::empty_like(in.u), gA = at::empty({rows, E, N}, in.u.options());
  at::Tensor gB = at::empty({rows, blocks, L, N}, in.u.options()), gC = at::empty_like(gB);
  AT_DISPATCH_FLOATING_TYPES(gy.scalar_type(), "selective_scan_backward", [&] {
    for_selective_blocks<scalar_t>(in, 4 + 2 * kKeepEvery, [&](int64_t row, int64_t block, scalar_t* room) {
      auto task = selective_task<scalar_t>(in, kept, row, block);
      task.gy = gy.const_data_ptr<scalar_t>() + row * L * E;
      task.gu = gu.mutable_data_ptr<scalar_t>() + row * L * E;
      task.gdt = gdt.mutable_data_ptr<scalar_t>() + row * L * E;
      task.gA = gA.mutable_data_ptr<scalar_t>() + (row * E + task.first) * N;
      task.gB = gB.mutable_data_ptr<scalar_t>() + (row * blocks + block) * L * N;
      task.gC = gC.mutable_data_ptr<scalar_t>() + (row * blocks + block) * L * N;
      run_selective_backward(task, room);
    });
  });
  return {gu, gdt, gA.sum(0), gB.sum(1), gC.sum(1)};
}

class SelectiveScan : public torch::autograd::Function<SelectiveScan> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& u, const at::Tensor& dt, const at::Tensor& A,
                            const at::Tensor& B, const at::Tensor& C) {
    const SelectiveScanInput in = {u.contiguous(), dt.contiguous(), A.contiguous(), B.contiguous(), C.contiguous()};
    const auto [y, kept] = selective_on_cpu(in);
    context->save_for_backward({in.u, in.dt, in.A, in.B, in.C, kept});
    return y;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return selective_gradients({saved[0], saved[1], saved[2], saved[3], saved[4]}, saved[5], gradients[0].contiguous());
  }
};

void check_selective(const SelectiveScanInput& in) {
  SPT_CHECK(in.u.dim() == 3 && in.A.dim() == 2 && in.B.dim() == 3, "u has {} dimensions, A {}, B {}", in.u.dim(), in.A.dim(), in.B.dim());
  SPT_CHECK(in.dt.sizes() == in.u.sizes() && in.A.size(0) == in.u.size(2), "{} channels of u, {} of A", in.u.size(2), in.A.size(0));
  SPT_CHECK(in.B.sizes() == in.C.sizes() && in.B.size(0) == in.u.size(0) && in.B.size(1) == in.u.size(1) && in.B.size(2) == in.A.size(1),
            "B is ({}, {}, {}) for {} rows of length {} and {} states", in.B.size(0), in.B.size(1), in.B.size(2), in.u.size(0),
            in.u.size(1), in.A.size(1));
}

}  // namespace

at::Tensor selective_scan(const SelectiveScanInput& in) {
  check_selective(in);
  RECORD_FUNCTION("spt::selective_scan", std::vector<c10::IValue>({in.u, in.A}));
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType precision = in.u.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const SelectiveScanInput full = {in.u.to(precision), in.dt.to(precision), in.A.to(precision), in.B.to(precision), in.C.to(precision)};
  if (!in.u.is_cpu()) return selective_scan_by_steps(full);
  return SelectiveScan::apply(full.u, full.dt, full.A, full.B, full.C);
}

at::Tensor selective_scan_by_steps(const SelectiveScanInput& in) {
  check_selective(in);
  at::Tensor h = at::zeros({in.u.size(0), in.u.size(2), in.A.size(1)}, in.u.options());
  std::vector<at::Tensor> outputs;
  for (int64_t t = 0; t < in.u.size(1); ++t) {
    const at::Tensor dt = in.dt.select(1, t).unsqueeze(-1);  // (B, E, 1)
    h = at::exp(dt * in.A) * h + dt * in.u.select(1, t).unsqueeze(-1) * in.B.select(1, t).unsqueeze(1);
    outputs.push_back(at::bmm(h, in.C.select(1, t).unsqueeze(-1)).squeeze(-1));
  }
  return at::stack(outputs, 1);
}

double selective_scan_flops(int64_t length, int64_t channels, int64_t state) {
  return 4.0 * static_cast<double>(length * channels * state);
}

}  // namespace spt::models
