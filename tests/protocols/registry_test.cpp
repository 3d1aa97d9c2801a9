#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/error.h"
#include "models/architecture.h"
#include "protocols/objective.h"
#include "protocols/protocol.h"

namespace spt::protocols {
namespace {

TEST(Protocols, EndWithASupervisedStageAndNameKnownObjectivesAndOptions) {
  ASSERT_EQ(protocols().size(), 3u);
  for (const Protocol& protocol : protocols()) {
    EXPECT_EQ(protocol.stages.back().objective, "supervised") << protocol.name;
    for (const StageTemplate& stage : protocol.stages) {
      const ObjectiveFacts& objective = find_objective(stage.objective);
      EXPECT_TRUE(protocol.causal || !objective.needs_causal) << protocol.name;
      for (const auto& [own, given] : stage.options) {
        const auto named = [](const std::vector<OptionSchema>& schema, const std::string& name) {
          return std::any_of(schema.begin(), schema.end(), [&](const OptionSchema& o) { return o.name == name; });
        };
        EXPECT_TRUE(named(objective.options, own)) << protocol.name << ": " << own;
        EXPECT_TRUE(named(protocol.options, given)) << protocol.name << ": " << given;
      }
    }
  }
}

TEST(Protocols, AnUnknownNameIsRefusedWithASuggestion) {
  try {
    find_protocol("spt-mask");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("spt-masked"), std::string::npos);
  }
}

TEST(Recipes, AreEmbeddedForEveryArchitecture) {
  std::vector<std::string> names;
  for (const auto& [name, text] : recipe_files()) {
    names.emplace_back(name);
    EXPECT_NE(text.find("source = "), std::string_view::npos) << name;
  }
  std::vector<std::string> registered;
  for (const models::Architecture& architecture : models::architectures()) registered.push_back(architecture.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, registered);
}

}  // namespace
}  // namespace spt::protocols
