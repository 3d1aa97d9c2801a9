#include "harness/worker/transfer.h"

#include <torch/torch.h>

#include <algorithm>

#include "harness/worker/checkpoint.h"
#include "tests/reference/handlers.h"
#include "tests/reference/networks.h"
#include "tests/reference/training.h"

// A pretraining run, its transfer into a fresh model by the worker's own code, and a fine-tuning run.
namespace spt::reference {
namespace {

/// One of the two runs: the model and how it is trained.
struct CaseStage {
  std::shared_ptr<models::Model> model;
  CaseRun run;
};

/// options.<name> with the body and the padding that both share.
CaseStage read_case_stage(Case& c, JsonReader& options, const char* name, const std::string& weights) {
  nlohmann::json whole = options.at(name);
  whole["body"] = options.at("body");
  if (options.has("padding")) whole["padding"] = options.get<std::string>("padding");
  JsonReader reader(whole, c.where(name));
  CaseStage stage;
  stage.model = build_case_model(c, reader);
  stage.run = read_run(c, reader);
  reader.finish();
  load_strictly(*stage.model, c.take(weights), c.name());
  return stage;
}

SafetensorsFile checkpoint_of(const models::Model& model) {
  SafetensorsFile checkpoint;
  for (const auto& [name, tensor] : worker::model_tensors(model)) checkpoint.tensors.emplace(name, worker::to_raw(tensor));
  return checkpoint;
}

void compare_names(Case& c, JsonReader& want, const char* key, std::vector<std::string> got) {
  auto expected = want.get<std::vector<std::string>>(key);
  std::sort(expected.begin(), expected.end());
  std::sort(got.begin(), got.end());
  c.check(std::string("transfer.") + key, got == expected,
          fmt::format("is [{}], expected [{}]", fmt::join(got, ", "), fmt::join(expected, ", ")));
}

void compare_audit(Case& c, const results::TransferEvent& audit) {
  JsonReader want(c.json().at("transfer"), c.where("transfer"));
  compare_names(c, want, "copied", audit.copied);
  compare_names(c, want, "sliced", audit.sliced);
  compare_names(c, want, "dropped", audit.dropped);
  compare_names(c, want, "fresh", audit.redrawn);
  want.finish();
}

/// Trains, and compares the losses, the factors where the case has them, and the tensors after the last step.
void train_stage_of_case(Case& c, const CaseStage& stage, const std::string& name, const std::string& tensors) {
  const CaseTrajectory trajectory = train_case_model(c, *stage.model, stage.run, name + ".", c.json().at("groups").at(name));
  c.compare_output(name + ".loss", torch::tensor(trajectory.losses, torch::kFloat64));
  if (c.has("output." + name + ".lr_factor")) c.compare_output(name + ".lr_factor", torch::tensor(trajectory.factors, torch::kFloat64));
  compare_tensors(c, *stage.model, tensors);
}

}  // namespace

void transfer_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const CaseStage pretrain = read_case_stage(c, options, "pretrain", "weight."),
                  finetune = read_case_stage(c, options, "finetune", "weight_finetune.");
  options.finish();
  train_stage_of_case(c, pretrain, "pretrain", "pretrained.");
  compare_audit(c, worker::transfer(checkpoint_of(*pretrain.model), *finetune.model, c.name()));
  train_stage_of_case(c, finetune, "finetune", "final.");
}

}  // namespace spt::reference
