#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan.h"
#include "tests/harness/fake_catalog.h"

namespace spt::plan_parts {

using testing_catalog::FakeWorker;

// One architecture, one task, three arms; what a test wants differs in the replacements.
struct Parts {
  std::string head = "seeds = [1, 2]\nprotocols = [\"scratch\", \"spt-masked\"]\n";
  std::string budget = "[budget]\nfinetune = { steps = 100 }\npretrain = { steps = 300 }\nevaluations = 10\n";
  std::string architectures = "[[architecture]]\nname = \"transformer\"\n";
  std::string tasks = "[[task]]\nname = \"fashion\"\n";
  std::string rest = "";
  std::string text() const { return "name = \"m\"\n" + head + budget + architectures + tasks + rest; }
};

inline Plan plan_of(const Parts& parts, FakeWorker* given = nullptr) {
  FakeWorker own;
  FakeWorker& worker = given ? *given : own;
  return plan_matrix(parse_matrix(parts.text(), "m.toml"), worker, "data");
}
inline std::string error_of(const Parts& parts) {
  try {
    plan_of(parts);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
inline const PlanCell& cell(const Plan& plan, const std::string& name) {
  for (const PlanCell& c : plan.cells)
    if (plan.cell_name(c) == name) return c;
  throw Error("no cell {}", name);
}
inline std::vector<std::string> arm_names(const Plan& plan, const std::string& architecture = "transformer") {
  std::vector<std::string> names;
  for (const PlanCell& c : plan.cells)
    if (plan.architectures[c.architecture].label == architecture) names.push_back(plan.arm_name(c));
  return names;
}
inline std::set<std::string> keys(const Plan& plan) {
  std::set<std::string> result;
  for (const PlanStage& stage : plan.stages) result.insert(stage.key);
  return result;
}

}  // namespace spt::plan_parts
