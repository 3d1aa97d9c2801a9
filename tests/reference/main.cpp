#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string_view>

#include "tests/reference/handlers.h"

namespace {

using spt::reference::Case;
using Handler = void (*)(Case&);

constexpr const char* kUsage =
    "usage: spt-reference-tests [--cases DIR] [--filter SUBSTRING] [--dtype float64|float32]\n"
    "Runs every reference case below DIR (default: the project's own) whose name contains SUBSTRING. Exit: 0 all agree, 1 a case differs "
    "or is\n"
    "not known, 2 wrong usage. float32: outputs of networks, layers and kernels alone, each within 1e-4 of the largest (1e-3 for kernels "
    "of\n"
    "s4 with N >= 256 and L >= 4000).\n";

/// (kind, subject) -> handler.
Handler find_handler(const Case& c) {
  using namespace spt::reference;
  static const std::map<std::pair<std::string, std::string>, Handler> kHandlers = {
      {{"architecture", "dlr"}, architecture_case},
      {{"architecture", "dss"}, architecture_case},
      {{"architecture", "long-conv"}, architecture_case},
      {{"architecture", "lru"}, architecture_case},
      {{"architecture", "lstm"}, architecture_case},
      {{"architecture", "mamba"}, architecture_case},
      {{"architecture", "mega"}, architecture_case},
      {{"architecture", "pythia"}, architecture_case},
      {{"architecture", "s4"}, architecture_case},
      {{"architecture", "s4d"}, architecture_case},
      {{"architecture", "s5"}, architecture_case},
      {{"architecture", "ssm-dense"}, architecture_case},
      {{"architecture", "transformer"}, architecture_case},
      {{"generator", "listops value"}, listops_value_case},
      {{"generator", "lra listops generator"}, listops_statistics_case},
      {{"generator", "pathfinder images"}, pathfinder_statistics_case},
      {{"generator", "pathfinder parts"}, pathfinder_parts_case},
      {{"head", "model"}, head_case},
      {{"init", "dlr"}, dlr_init_case},
      {{"init", "s4"}, s4_init_case},
      {{"init", "random"}, random_init_case},
      {{"init", "s4d"}, s4d_init_case},
      {{"interchange", "gpt-neox"}, interchange_case},
      {{"interchange", "not-from-scratch"}, interchange_case},
      {{"kernel", "dlr"}, diagonal_kernel_case},
      {{"kernel", "dss"}, diagonal_kernel_case},
      {{"kernel", "s4"}, s4_kernel_case},
      {{"kernel", "s4d"}, s4d_kernel_case},
      {{"kernel", "ssm-dense"}, ssm_dense_kernel_case},
      {{"layer", "attention.reset_parameters"}, attention_init_case},
      {{"layer", "mega.ema"}, mega_ema_case},
      {{"layer", "mega.reset_parameters"}, mega_init_case},
      {{"layer", "dlr"}, diagonal_layer_case},
      {{"layer", "dss"}, diagonal_layer_case},
      {{"layer", "model.reset_parameters"}, initial_model_case},
      {{"layer", "s4"}, s4_layer_case},
      {{"layer", "s4d"}, s4d_layer_case},
      {{"layer", "ssm-dense"}, ssm_dense_layer_case},
      {{"objective", "causal_levels"}, causal_levels_case},
      {{"objective", "causal_tokens"}, causal_tokens_case},
      {{"objective", "causal_values"}, causal_values_case},
      {{"objective", "masked_levels"}, masked_levels_case},
      {{"objective", "masked_tokens"}, masked_tokens_case},
      {{"objective", "masked_values"}, masked_values_case},
      {{"objective", "metric_aggregation"}, metric_aggregation_case},
      {{"objective", "supervised"}, supervised_case},
      {{"optimizer", "model"}, optimizer_case},
      {{"preprocess", "bidmc_targets"}, bidmc_targets_case},
      {{"preprocess", "cifar_grey"}, grey_image_case},
      {{"preprocess", "cifar_rgb"}, rgb_image_case},
      {{"preprocess", "pathfinder"}, pathfinder_preprocess_case},
      {{"preprocess", "speech_commands"}, speech_case},
      {{"schedule", "schedule"}, schedule_case},
      {{"split", "random_split"}, random_split_case},
      {{"split", "train_fraction"}, train_fraction_case},
      {{"split", "two_stage"}, two_stage_case},
      {{"tokenizer", "listops"}, listops_tokenizer_case},
      {{"tokenizer", "retrieval"}, retrieval_tokenizer_case},
      {{"tokenizer", "text"}, text_tokenizer_case},
      {{"training", "model"}, training_case},
      {{"transfer", "model"}, transfer_case},
  };
  const auto found = kHandlers.find({c.kind(), c.subject()});
  if (found == kHandlers.end()) throw spt::Error("nothing handles kind '{}' with subject '{}'", c.kind(), c.subject());
  return found->second;
}

/// Whether a case says what a network computes, so that a run in float32 means something; what it draws at first does not depend on that.
bool computes_outputs(const Case& c) {
  static const std::set<std::string> kKinds = {"architecture", "head", "kernel", "layer"};
  return kKinds.contains(c.kind()) && !c.subject().ends_with("reset_parameters");
}

enum class Outcome { kAgrees, kFails, kLeftOut };

/// One line a case that is run: name, ok or FAILED, largest difference; then one line a failure.
Outcome run_case(const std::filesystem::path& folder, at::ScalarType type) {
  std::vector<std::string> failures;
  double worst = 0;
  int compared = 0;
  try {
    Case c(folder, type);
    if (type == at::kFloat && !computes_outputs(c)) return Outcome::kLeftOut;
    find_handler(c)(c);
    c.finish();
    failures = c.failures();
    worst = c.worst();
    compared = c.compared();
  } catch (const std::exception& error) {  // whatever a case does, the next one is run
    failures.push_back(error.what());
  }
  fmt::print("{:<42} {:<6} {:>4} compared, largest difference {:.2e}\n", folder.filename().string(), failures.empty() ? "ok" : "FAILED",
             compared, worst);
  for (const std::string& failure : failures) fmt::print("    {}\n", failure);
  return failures.empty() ? Outcome::kAgrees : Outcome::kFails;
}

int run_all(const std::filesystem::path& root, const std::string& filter, at::ScalarType type) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root))
    if (std::filesystem::exists(entry.path() / "case.json") && entry.path().filename().string().find(filter) != std::string::npos)
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) throw spt::Error("no case below '{}' has '{}' in its name", root.string(), filter);
  std::map<Outcome, int> outcomes;
  for (const auto& folder : folders) ++outcomes[run_case(folder, type)];
  const int failed = outcomes[Outcome::kFails], run = outcomes[Outcome::kAgrees] + failed;
  if (run == 0) throw spt::Error("no case below '{}' with '{}' in its name has outputs to compare in float32", root.string(), filter);
  fmt::print("{} cases, {} failed\n", run, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path root = SPT_REFERENCE_CASES;
  std::string filter;
  at::ScalarType type = at::kDouble;
  static const std::map<std::string, at::ScalarType> kTypes = {{"float32", at::kFloat}, {"float64", at::kDouble}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if ((flag == "--cases" || flag == "--filter") && i + 1 < argc) {
      if (flag == "--cases") root = argv[++i];
      else filter = argv[++i];
    } else if (flag == "--dtype" && i + 1 < argc && kTypes.contains(argv[i + 1])) {
      type = kTypes.at(argv[++i]);
    } else {
      fmt::print(stderr, "{}", kUsage);
      return flag == "--help" ? 0 : 2;
    }
  }
  at::set_num_threads(1);
  try {
    return run_all(root, filter, type);
  } catch (const std::exception& error) {
    fmt::print(stderr, "spt-reference-tests: {}\n", error.what());
    return 1;
  }
}
