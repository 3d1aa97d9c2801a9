#include "protocols/objective.h"

#include <algorithm>

namespace spt::protocols {
namespace {

struct NamedObjective {
  ObjectiveFacts facts;
  std::unique_ptr<Objective> (*make)(const OptionMap& options, const tasks::TaskFacts& facts, const HeadChoice& head);
};

const std::vector<NamedObjective>& named_objectives() {
  static const std::vector<NamedObjective> kObjectives = {
      {{.name = "causal", .version = 1, .options = {}, .needs_causal = true},
       [](const OptionMap&, const tasks::TaskFacts& facts, const HeadChoice&) { return causal_objective(facts); }},
      {{.name = "masked", .version = 1, .options = schema_of<MaskedOptions>(), .needs_causal = false},
       [](const OptionMap& options, const tasks::TaskFacts& facts, const HeadChoice&) {
         return masked_objective(read_options<MaskedOptions>(options, "objective masked"), facts);
       }},
      {{.name = "supervised", .version = 1, .options = {}, .needs_causal = false},
       [](const OptionMap&, const tasks::TaskFacts& facts, const HeadChoice& head) { return supervised_objective(facts, head); }},
  };
  return kObjectives;
}

}  // namespace

Prepared Objective::prepare(const tasks::Batch& batch, uint64_t epoch, const Stream& mask) const {
  const std::vector<uint64_t> epochs(batch.example_ids.size(0), epoch);
  return prepare(batch, std::span<const uint64_t>(epochs), mask);
}

const std::vector<ObjectiveFacts>& objectives() {
  static const std::vector<ObjectiveFacts> kFacts = [] {
    std::vector<ObjectiveFacts> facts;
    for (const NamedObjective& objective : named_objectives()) facts.push_back(objective.facts);
    return facts;
  }();
  return kFacts;
}

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const ObjectiveFacts& facts : objectives()) names.push_back(facts.name);
    return names;
  }();
  return kNames;
}

const ObjectiveFacts& find_objective(const std::string& name) {
  const auto& all = objectives();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ObjectiveFacts& facts) { return facts.name == name; });
  if (found == all.end()) throw Error("{}", unknown_name("objective", name, objective_names()));
  return *found;
}

std::unique_ptr<Objective> make_objective(const std::string& name, const OptionMap& options, const tasks::TaskFacts& facts,
                                          const HeadChoice& head) {
  const OptionMap checked = complete(find_objective(name).options, options, fmt::format("objective {}", name));
  for (const NamedObjective& objective : named_objectives())
    if (objective.facts.name == name) return objective.make(checked, facts, head);
  check_failed(__FILE__, __LINE__, "found", "an objective has facts but no maker");
}

}  // namespace spt::protocols
