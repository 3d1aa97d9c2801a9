#include "harness/worker/process.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <torch/cuda.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/base/error.h"

namespace spt::worker {
namespace {

constexpr unsigned kStopSeconds = 2;
volatile sig_atomic_t stop_flag = 0;

extern "C" void on_stop_signal(int) {
  stop_flag = 1;
  ::alarm(kStopSeconds);  // its default action ends the process
}

void load_cuda() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // cuBLAS is deterministic only with a fixed workspace
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) throw Error("cannot load LibTorch's CUDA half: {}", ::dlerror());
  if (!torch::cuda::is_available()) throw Error("device 'cuda': LibTorch finds no usable GPU; use --device cpu");
}

}  // namespace

void prepare_process() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // where it cannot be written, nothing is lost but this preference
}

double process_age_s() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));  // the name may hold blanks
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
  }
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  return uptime - std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

at::Device prepare_device(const std::string& device, int64_t threads) {
  if (device != "cpu" && device != "cuda") throw Error("{}", unknown_name("device", device, std::vector<std::string>{"cpu", "cuda"}));
  if (device == "cuda") load_cuda();
  at::set_num_threads(static_cast<int>(threads));
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, false);
  context.setDeterministicFillUninitializedMemory(false);  // a debugging aid that writes every new tensor twice
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setFloat32MatmulPrecision("highest");
  return device == "cuda" ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

bool has_cuda_half() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) == 0) return false;
  return std::filesystem::exists(std::filesystem::path(info.dli_fname).parent_path() / "libtorch_cuda.so");
}

void reset_peak_memory(const at::Device& device) {
  if (device.is_cuda()) at::accelerator::resetPeakStats(device.index());
  else std::ofstream("/proc/self/clear_refs") << 5;  // where the kernel refuses, the peak is that of the whole process
}

int64_t peak_memory(const at::Device& device) {
  if (device.is_cuda()) return at::accelerator::getDeviceStats(device.index()).allocated_bytes[0].peak;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::strtoll(line.c_str() + 6, nullptr, 10);
  return 0;
}

void install_stop_signals() {
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

bool stop_requested() { return stop_flag != 0; }
void set_stop_requested(bool stop) { stop_flag = stop ? 1 : 0; }

}  // namespace spt::worker
