#include "models/kernels/selftest.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "harness/base/error.h"
#include "models/kernels/causal_convolution.h"
#include "models/kernels/dense_kernel.h"
#include "models/kernels/diagonal_scan.h"
#include "models/kernels/dlr_kernel.h"
#include "models/kernels/dss_kernel.h"
#include "models/kernels/ema_kernel.h"
#include "models/kernels/fused_attention.h"
#include "models/kernels/long_convolution.h"
#include "models/kernels/s4_kernel.h"
#include "models/kernels/s4d_kernel.h"
#include "models/kernels/selective_scan.h"

namespace spt::models {
namespace {

constexpr double kTolerance64 = 1e-9, kTolerance32 = 2e-4, kToleranceGradient64 = 1e-5, kToleranceGradient32 = 1e-3;

struct Kernel {
  std::string name;
  std::vector<at::Tensor> inputs;  ///< float64, CPU
  std::function<at::Tensor(const std::vector<at::Tensor>&)> fast, slow;
};

double relative_error(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor a = got.detach().to(torch::kCPU, torch::kFloat64);
  return (a - want).abs().max().item<double>() / want.abs().max().item<double>();
}

std::vector<at::Tensor> moved(const std::vector<at::Tensor>& inputs, const at::Device& device, at::ScalarType dtype) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& input : inputs) result.push_back(input.to(device, dtype).detach().requires_grad_());
  return result;
}

/// d/de sum(slow(inputs + e direction) * cotangent) against the sum of gradient * direction of the fast one.
double gradient_error(const Kernel& kernel, const at::Device& device, at::ScalarType dtype, const at::Generator& generator) {
  const std::vector<at::Tensor> leaves = moved(kernel.inputs, device, dtype);
  const at::Tensor y = kernel.fast(leaves);
  const at::Tensor cotangent = torch::empty(y.sizes(), torch::kFloat64).normal_(0, 1, generator);
  (y * cotangent.to(device, dtype)).sum().backward();
  constexpr double kStep = 1e-6;
  std::vector<at::Tensor> ahead, behind;
  double expected = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor direction = torch::empty(kernel.inputs[i].sizes(), torch::kFloat64).normal_(0, 1, generator);
    ahead.push_back(kernel.inputs[i] + kStep * direction);
    behind.push_back(kernel.inputs[i] - kStep * direction);
    expected += (leaves[i].grad().to(torch::kCPU, torch::kFloat64) * direction).sum().item<double>();
  }
  const double measured = ((kernel.slow(ahead) - kernel.slow(behind)) * cotangent).sum().item<double>() / (2 * kStep);
  return std::abs(measured - expected) / std::max(1.0, std::abs(expected));
}

Kernel convolution_test(int64_t directions, int64_t length, int64_t taps, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  return {fmt::format("long_convolution {} L={} taps={}", directions == 1 ? "causal" : "bidirectional", length, taps),
          {normal({2, length, 3}), normal({directions, 3, taps})},
          [](const std::vector<at::Tensor>& in) { return long_convolution(in[0], in[1]); },
          [](const std::vector<at::Tensor>& in) { return long_convolution_naive(in[0], in[1]); }};
}

Kernel s4d_test(bool bilinear, int64_t directions, int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  const int64_t H = 4, copies = 2, pairs = 3;
  const auto parameters = [bilinear](const std::vector<at::Tensor>& in) {
    return S4dParameters{in[0], in[1], in[2], in[3], in[4], bilinear};
  };
  return {fmt::format("s4d_kernel {} {} L={}", bilinear ? "bilinear" : "zoh", directions == 1 ? "causal" : "bidirectional", length),
          {normal({H}) * 0.5 - 4, normal({copies, pairs}) * 0.3 - 0.7, normal({copies, pairs}) * 5, normal({copies, pairs, 2}),
           normal({directions, H, pairs, 2})},
          [=](const std::vector<at::Tensor>& in) { return s4d_kernel(parameters(in), length); },
          [=](const std::vector<at::Tensor>& in) { return s4d_kernel_naive(parameters(in), length); }};
}

Kernel s4_test(int64_t directions, int64_t period, int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  const int64_t H = 4, copies = 2, pairs = 3;
  const auto parameters = [](const std::vector<at::Tensor>& in) { return S4Parameters{in[0], in[1], in[2], in[3], in[4], in[5]}; };
  return {fmt::format("s4_kernel {} period={} L={}", directions == 1 ? "causal" : "bidirectional", period, length),
          {normal({H}) * 0.5 - 3, normal({copies, pairs}) * 0.3 - 0.7, normal({copies, pairs}) * 5, normal({1, copies, pairs, 2}),
           normal({1, copies, pairs, 2}), normal({directions, H, pairs, 2})},
          [=](const std::vector<at::Tensor>& in) { return s4_kernel(parameters(in), period, length); },
          [=](const std::vector<at::Tensor>& in) { return s4_kernel_naive(parameters(in), period, length); }};
}

Kernel dense_test(int64_t directions, int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  const int64_t H = 4, copies = 2, N = 5;
  const auto parameters = [](const std::vector<at::Tensor>& in) { return DenseParameters{in[0], in[1], in[2], in[3]}; };
  return {fmt::format("dense_kernel {} L={}", directions == 1 ? "causal" : "bidirectional", length),
          {normal({H}) * 0.5 - 3, normal({copies, N, N}) * 0.4 - torch::eye(N, torch::kFloat64), normal({copies, N}),
           normal({directions, H, N})},
          [=](const std::vector<at::Tensor>& in) { return dense_kernel(parameters(in), length); },
          [=](const std::vector<at::Tensor>& in) { return dense_kernel_naive(parameters(in), length); }};
}

Kernel causal_convolution_test(int64_t length, int64_t taps, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  return {fmt::format("causal_convolution L={} taps={}", length, taps),
          {normal({2, length, 19}), normal({taps, 19}), normal({19})},
          [](const std::vector<at::Tensor>& in) { return causal_convolution(in[0], in[1], in[2]); },
          [](const std::vector<at::Tensor>& in) { return causal_convolution_naive(in[0], in[1], in[2]); }};
}

/// Factors inside the unit circle; 37 states are more than a block of the scan.
Kernel diagonal_scan_test(bool reverse, int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  return {fmt::format("diagonal_scan {} L={}", reverse ? "backwards" : "forwards", length),
          {torch::tanh(normal({2, 37})) * 0.7, normal({2, length, 74})},
          [=](const std::vector<at::Tensor>& in) { return diagonal_scan(in[0], in[1], reverse); },
          [=](const std::vector<at::Tensor>& in) { return diagonal_scan_naive(in[0], in[1], reverse); }};
}

/// 37 channels are more than a block of the scan.
Kernel selective_scan_test(int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  return {fmt::format("selective_scan L={}", length),
          {normal({2, length, 37}), torch::exp(normal({2, length, 37}) - 1), -torch::exp(normal({37, 5})), normal({2, length, 5}),
           normal({2, length, 5})},
          [](const std::vector<at::Tensor>& in) { return selective_scan({in[0], in[1], in[2], in[3], in[4]}); },
          [](const std::vector<at::Tensor>& in) { return selective_scan_naive({in[0], in[1], in[2], in[3], in[4]}); }};
}

Kernel ema_test(int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  const int64_t R = 6, N = 4;
  const auto parameters = [](const std::vector<at::Tensor>& in) { return EmaParameters{in[0], in[1], in[2], in[3]}; };
  return {fmt::format("ema_kernel L={}", length),
          {normal({R, N, 1}) - 2, normal({R, N, 1}) - 2, normal({R, N}), normal({R, N})},
          [=](const std::vector<at::Tensor>& in) { return ema_kernel(parameters(in), length); },
          [=](const std::vector<at::Tensor>& in) { return ema_kernel_naive(parameters(in), length); }};
}

Kernel attention_test(bool causal, bool masked, int64_t length, int64_t size, const at::Generator& generator) {
  const auto normal = [&] { return torch::empty({2, 2, length, size}, torch::kFloat64).normal_(0, 1, generator); };
  at::Tensor real;
  if (masked) real = torch::empty({2, length}, torch::kFloat64).uniform_(0, 1, generator) > 0.3;
  return {fmt::format("fused_attention{}{} L={} d={}", causal ? " causal" : "", masked ? " masked" : "", length, size),
          {normal(), normal(), normal()},
          [=](const std::vector<at::Tensor>& in) {
            return fused_attention(in[0], in[1], in[2], real.defined() ? real.to(in[0].device()) : real, causal);
          },
          [=](const std::vector<at::Tensor>& in) { return fused_attention_naive(in[0], in[1], in[2], real, causal); }};
}

Kernel dlr_test(int64_t directions, int64_t modes, int64_t length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  return {fmt::format("dlr_kernel {} N={} L={}", directions == 1 ? "causal" : "bidirectional", modes, length),
          {normal({modes}) * 0.1, normal({modes}) * 3, normal({directions, 3, modes, 2})},
          [=](const std::vector<at::Tensor>& in) { return dlr_kernel({in[0], in[1], in[2]}, length); },
          [=](const std::vector<at::Tensor>& in) { return dlr_kernel_naive({in[0], in[1], in[2]}, length); }};
}

Kernel dss_test(bool softmax, int64_t directions, int64_t length, int64_t softmax_length, const at::Generator& generator) {
  const auto normal = [&](at::IntArrayRef sizes) { return torch::empty(sizes, torch::kFloat64).normal_(0, 1, generator); };
  const int64_t H = 4, N = 5;
  const auto parameters = [=](const std::vector<at::Tensor>& in) {
    return softmax ? DssParameters{in[0], {}, {}, torch::stack({-in[1].exp(), in[2]}, -1), in[3], softmax_length}
                   : DssParameters{in[0], in[1], in[2], {}, in[3]};
  };
  return {fmt::format("dss_kernel {} {} L={}", softmax ? "softmax" : "exp", directions == 1 ? "causal" : "bidirectional", length),
          {normal({H}) * 0.5 - 4, normal({N}) * 0.3 - 0.7, normal({N}) * 5, normal({directions, H, N, 2})},
          [=](const std::vector<at::Tensor>& in) { return dss_kernel(parameters(in), length); },
          [=](const std::vector<at::Tensor>& in) { return dss_kernel_naive(parameters(in), length); }};
}

}  // namespace

std::vector<KernelCheck> run_kernel_selftests(const at::Device& device) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(20231002);
  const std::vector<Kernel> kernels = {convolution_test(1, 33, 33, generator),
                                       convolution_test(2, 64, 64, generator),
                                       convolution_test(2, 40, 17, generator),
                                       s4d_test(true, 2, 64, generator),
                                       s4d_test(true, 1, 35, generator),
                                       s4d_test(false, 2, 33, generator),
                                       s4d_test(false, 1, 100, generator),
                                       s4_test(2, 32, 32, generator),
                                       s4_test(1, 33, 20, generator),
                                       dense_test(2, 33, generator),
                                       dense_test(1, 20, generator),
                                       causal_convolution_test(30, 4, generator),
                                       causal_convolution_test(2, 4, generator),
                                       diagonal_scan_test(false, 40, generator),
                                       diagonal_scan_test(true, 33, generator),
                                       selective_scan_test(32, generator),
                                       selective_scan_test(75, generator),
                                       ema_test(33, generator),
                                       ema_test(256, generator),
                                       attention_test(false, false, 70, 16, generator),
                                       attention_test(true, false, 70, 24, generator),
                                       attention_test(false, true, 150, 8, generator),
                                       dlr_test(2, 6, 64, generator),
                                       dlr_test(1, 70, 101, generator),
                                       dss_test(false, 2, 64, 0, generator),
                                       dss_test(true, 1, 35, 0, generator),
                                       dss_test(true, 2, 64, 90, generator)};
  std::vector<KernelCheck> checks;
  const auto add = [&](const std::string& name, double error, double tolerance) {
    checks.push_back({name, error, tolerance, error <= tolerance});
  };
  for (const Kernel& kernel : kernels) {
    const at::Tensor want = kernel.slow(kernel.inputs);
    add(kernel.name + " float64", relative_error(kernel.fast(moved(kernel.inputs, device, torch::kFloat64)), want), kTolerance64);
    add(kernel.name + " float32", relative_error(kernel.fast(moved(kernel.inputs, device, torch::kFloat32)), want), kTolerance32);
    add(kernel.name + " gradient", gradient_error(kernel, device, torch::kFloat64, generator), kToleranceGradient64);
    add(kernel.name + " gradient float32", gradient_error(kernel, device, torch::kFloat32, generator), kToleranceGradient32);
  }
  return checks;
}

}  // namespace spt::models
