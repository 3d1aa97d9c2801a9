#include "harness/worker/stamp.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <torch/version.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

namespace spt::worker {
namespace {

/// dl_iterate_phdr's first object is the program itself.
int read_build_id(dl_phdr_info* info, size_t, void* out) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const char* end = at + info->dlpi_phdr[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
      const char* name = at + sizeof(note);
      const char* value = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        auto& text = *static_cast<std::string*>(out);
        for (size_t k = 0; k < note.n_descsz; ++k) text += fmt::format("{:02x}", static_cast<unsigned char>(value[k]));
        return 1;
      }
      at = value + padded(note.n_descsz);
    }
  }
  return 1;  // only the first object
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// The driver's own list: asking LibTorch would need CUDA's headers. Several GPUs of different models are all named.
std::string cuda_model() {
  std::set<std::string> models;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream in(gpu.path() / "information");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("Model:")) models.insert(line.substr(line.find_first_not_of(" \t", 6)));
  }
  return models.empty() ? "unknown" : fmt::format("{}", fmt::join(models, " / "));
}

}  // namespace

std::string build_id() {
  std::string text;
  ::dl_iterate_phdr(read_build_id, &text);
  return text.empty() ? "none" : text;
}

std::string libtorch_version() { return TORCH_VERSION; }
std::string compiler_version() { return "g++ " __VERSION__; }

results::Stamp make_stamp(const std::string& device, int64_t threads) {
  return {.build_id = build_id(),
          .libtorch = libtorch_version(),
          .compiler = compiler_version(),
          .device_kind = device,
          .device_model = device == "cpu" ? cpu_model() : cuda_model(),
          .cpu_capability = at::get_cpu_capability(),
          .threads = threads,
          .deterministic = at::globalContext().deterministicAlgorithms()};
}

ResumeVerdict may_resume(const results::Stamp& then, const results::Stamp& now, bool across) {
  if (then == now) return {.allowed = true, .equal = true, .note = ""};
  std::vector<std::string> differing;
  const auto compare = [&](const char* name, const auto& a, const auto& b) {
    if (a != b) differing.push_back(fmt::format("{} {} -> {}", name, a, b));
  };
  compare("build", then.build_id, now.build_id);
  compare("LibTorch", then.libtorch, now.libtorch);
  compare("compiler", then.compiler, now.compiler);
  compare("device kind", then.device_kind, now.device_kind);
  compare("device", then.device_model, now.device_model);
  compare("CPU capability", then.cpu_capability, now.cpu_capability);
  compare("threads", then.threads, now.threads);
  compare("deterministic mode", then.deterministic, now.deterministic);
  const bool same_program = then.build_id == now.build_id && then.libtorch == now.libtorch && then.device_kind == now.device_kind;
  return {.allowed = same_program || across, .equal = false, .note = fmt::format("{}", fmt::join(differing, ", "))};
}

}  // namespace spt::worker
