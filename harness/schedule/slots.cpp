#include "harness/schedule/slots.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "harness/base/error.h"

namespace spt::schedule {
namespace {

std::vector<int> parse_gpus(std::string_view text, int64_t gpus) {
  std::vector<int> list;
  if (text == "cuda") {
    for (int i = 0; i < gpus; ++i) list.push_back(i);
    if (list.empty()) throw Error("--device cuda: no NVIDIA GPU answers on this machine; valid here: cpu");
    return list;
  }
  constexpr std::string_view kPrefix = "cuda:";
  if (!text.starts_with(kPrefix)) throw Error("--device '{}': valid: cpu, cuda, cuda:N or cuda:N,M,...", text);
  std::string_view rest = text.substr(kPrefix.size());
  while (true) {
    int gpu = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), gpu);
    if (error != std::errc() || gpu < 0) throw Error("--device '{}': valid: cpu, cuda, cuda:N or cuda:N,M,...", text);
    if (gpu >= gpus) throw Error("--device '{}': there is no GPU {}; this machine has {}", text, gpu, gpus);
    if (std::find(list.begin(), list.end(), gpu) != list.end()) throw Error("--device '{}': GPU {} is named twice", text, gpu);
    list.push_back(gpu);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty()) return list;
    if (rest.front() != ',') throw Error("--device '{}': valid: cpu, cuda, cuda:N or cuda:N,M,...", text);
    rest.remove_prefix(1);
  }
}

}  // namespace

std::string Slot::name() const { return gpu < 0 ? device : fmt::format("{}:{}", device, gpu); }

std::vector<Slot> make_slots(const SlotOptions& options, int64_t cores, int64_t gpus) {
  if (options.threads < 1) throw Error("--threads {}: a slot needs at least 1 thread", options.threads);
  if (options.slots < 0) throw Error("--slots {}: give a positive number, or leave it out for one slot a core", options.slots);
  if (options.jobs_per_gpu < 1) throw Error("--jobs-per-gpu {}: a GPU runs at least 1 job", options.jobs_per_gpu);
  std::vector<Slot> slots;
  if (options.device == "cpu") {
    const int64_t count = options.slots > 0 ? options.slots : std::max<int64_t>(1, cores / options.threads);
    if (count * options.threads > cores)
      throw Error("{} slots of {} threads want {} cores, this machine gives {}: more threads than cores make every job slower", count,
                  options.threads, count * options.threads, cores);
    slots.assign(static_cast<size_t>(count), Slot{.device = "cpu", .gpu = -1, .threads = options.threads});
    return slots;
  }
  for (const int gpu : parse_gpus(options.device, gpus))
    for (int64_t i = 0; i < options.jobs_per_gpu; ++i) slots.push_back({.device = "cuda", .gpu = gpu, .threads = options.threads});
  if (options.slots > 0 && options.slots < static_cast<int64_t>(slots.size())) slots.resize(static_cast<size_t>(options.slots));
  return slots;
}

int64_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int64_t available_gpus() {
  const std::filesystem::path folder = "/proc/driver/nvidia/gpus";  // one folder a GPU, made by the driver
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return 0;
  return std::distance(std::filesystem::directory_iterator(folder, none), std::filesystem::directory_iterator());
}

}  // namespace spt::schedule
