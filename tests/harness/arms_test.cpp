#include "harness/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/plan.h"
#include "tests/harness/fake_catalog.h"

namespace spt {
namespace {

std::vector<std::string> arms_of_text(const std::string& head) {
  testing_catalog::FakeWorker worker;
  const std::string text = head + "[[architecture]]\nname = \"transformer\"\n[[task]]\nname = \"fashion\"\n";
  std::vector<std::string> names;
  for (const Arm& arm : plan_matrix(parse_matrix(text, "m.toml"), worker, "data").arms) names.push_back(arm.name);
  return names;
}

TEST(Arms, InTotalModeAScratchProtocolThatAnswersNoPretrainingKeepsItsArm) {
  const std::string protocols =
      "name = \"m\"\nseeds = [1]\nbudget = { total = { steps = 400 } }\n[[protocol]]\nname = \"scratch\"\n"
      "[[protocol]]\nname = \"scratch\"\nlabel = \"normal\"\noptions = { init = \"normal\" }\n[[protocol]]\nname = \"spt-masked\"\n";
  EXPECT_THAT(arms_of_text(protocols), testing::UnorderedElementsAre("normal@T", "spt-masked@P+F", "scratch@T"));
}

}  // namespace
}  // namespace spt
