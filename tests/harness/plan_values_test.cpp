#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/plan.h"
#include "tests/harness/plan_parts.h"

// Steps and values: what [budget], recipes, [train], [stage.*] and overrides make of a plan.
namespace spt {
namespace {

using plan_parts::arm_names;
using plan_parts::cell;
using plan_parts::error_of;
using plan_parts::FakeWorker;
using plan_parts::Parts;
using plan_parts::plan_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlanValues, ValuesComeFromTheMostSpecificPlace) {
  Parts parts;
  parts.architectures = "[[architecture]]\nname = \"s4d\"\n";
  parts.tasks += "[[task]]\nname = \"listops\"\n";
  const auto rate = [&](const std::string& rest, const std::string& task, size_t stage) {
    Parts p = parts;
    p.rest = rest;
    return cell(plan_of(p), task + "/s4d/spt-masked@P+F").spec.stages[stage].train.lr;
  };
  EXPECT_EQ(rate("", "fashion", 0), 0.004) << "recipe";
  EXPECT_EQ(rate("", "listops", 0), 0.002) << "recipe of the task";
  const std::string train = "[train]\nlr = 0.1\n";
  EXPECT_EQ(rate(train, "listops", 0), 0.1);
  const std::string stage = train + "[stage.pretrain]\nlr = 0.2\n";
  EXPECT_EQ(rate(stage, "listops", 0), 0.2);
  EXPECT_EQ(rate(stage, "listops", 1), 0.1);
  const std::string one = stage + "[[override]]\ntask = \"listops\"\ntrain = { lr = 0.3 }\n";
  EXPECT_EQ(rate(one, "listops", 1), 0.3);
  EXPECT_EQ(rate(one, "fashion", 1), 0.1);
  const std::string two = one + "[[override]]\narchitecture = \"s4d\"\nstage = \"pretrain\"\ntrain = { lr = 0.4 }\n";
  EXPECT_EQ(rate(two, "listops", 0), 0.4);
  EXPECT_EQ(rate(two, "listops", 1), 0.3);
}

TEST(PlanValues, EquallySpecificOverridesThatDisagreeAreAnError) {
  Parts parts;
  parts.rest =
      "[[override]]\ntask = \"fashion\"\ntrain = { lr = 0.3 }\n[[override]]\narchitecture = \"transformer\"\ntrain = { lr = 0.4 }\n";
  EXPECT_THAT(error_of(parts), HasSubstr("as specific"));
  EXPECT_THAT(error_of(parts), HasSubstr("m.toml:17:"));
  parts.rest += "[[override]]\narchitecture = \"transformer\"\ntask = \"fashion\"\ntrain = { lr = 0.5 }\n";
  EXPECT_EQ(error_of(parts), "");
  Parts agreeing;
  agreeing.rest =
      "[[override]]\ntask = \"fashion\"\ntrain = { lr = 0.3 }\n[[override]]\narchitecture = \"transformer\"\ntrain = { lr = 0.3 }\n";
  EXPECT_EQ(error_of(agreeing), "");
}

TEST(PlanValues, MatchesByTokensExamplesAndFlops) {
  Parts parts;
  parts.budget += "match = [\"steps\", \"examples\", \"tokens\", \"flops\"]\n";
  parts.rest = "[stage.pretrain]\nbatch = 64\n";
  const Plan plan = plan_of(parts);
  const auto steps = [&](const std::string& arm) { return cell(plan, "fashion/transformer/" + arm).spec.stages.at(0).steps; };
  EXPECT_EQ(steps("scratch@(P+F)"), 100 + 300);
  EXPECT_EQ(steps("scratch@(P+F):examples"), 100 + 600);
  EXPECT_EQ(steps("scratch@(P+F):tokens"), 100 + 600);
  EXPECT_EQ(steps("scratch@(P+F):flops"), 100 + 300 * 4);
  EXPECT_EQ(cell(plan, "fashion/transformer/scratch@(P+F):flops").residual, 0.0);
}

TEST(PlanValues, ResidualIsWhatRoundingLeavesAndTooMuchOfItIsAnError) {
  Parts parts;
  parts.budget = "[budget]\nfinetune = { steps = 10 }\npretrain = { steps = 10 }\nevaluations = 1\nmatch = [\"flops\"]\n";
  FakeWorker worker;
  worker.pretrain_flops = 1.03;
  const Plan plan = plan_of(parts, &worker);
  EXPECT_NEAR(*cell(plan, "fashion/transformer/scratch@(P+F):flops").residual, 0.3 / 20, 1e-9);
  worker.pretrain_flops = 1.049;
  EXPECT_THROW(plan_of(parts, &worker), Error);
}

TEST(PlanValues, TotalModeSplitsOneBudget) {
  Parts parts;
  parts.budget = "[budget]\ntotal = { steps = 400 }\npretrain = { share = 0.75 }\n";
  const Plan plan = plan_of(parts);
  EXPECT_THAT(arm_names(plan), ElementsAre("spt-masked@P+F", "scratch@T"));
  const PlanCell& spt = cell(plan, "fashion/transformer/spt-masked@P+F");
  EXPECT_EQ(spt.spec.stages[0].steps, 300);
  EXPECT_EQ(spt.spec.stages[1].steps, 100);
  EXPECT_EQ(cell(plan, "fashion/transformer/scratch@T").spec.stages[0].steps, 400);
  EXPECT_EQ(cell(plan, "fashion/majority/scratch@T").spec.stages[0].steps, 400);
  EXPECT_EQ(matrix_row(plan).mode, "total");
}

TEST(PlanValues, SharesAndOtherUnitsBecomeSteps) {
  const auto steps = [](const std::string& budget, const std::string& rest = "") {
    Parts parts;
    parts.budget = "[budget]\nevaluations = 1\n" + budget;
    parts.rest = rest;
    const std::vector<StageSpec> stages = cell(plan_of(parts), "fashion/transformer/spt-masked@P+F").spec.stages;
    return std::pair(stages[0].steps, stages[1].steps);
  };
  using Steps = std::pair<int64_t, int64_t>;
  EXPECT_EQ(steps("finetune = { steps = 100 }\n"), Steps(100, 100)) << "P = F by default";
  EXPECT_EQ(steps("finetune = { steps = 100 }\npretrain = { share = 0.75 }\n"), Steps(300, 100));
  EXPECT_EQ(steps("finetune = { epochs = 2 }\npretrain = { epochs = 0.5 }\n"), Steps(16, 63)) << "1000 examples in batches of 32";
  EXPECT_EQ(steps("finetune = { examples = 64 }\npretrain = { examples = 65 }\n"), Steps(3, 2));
  EXPECT_EQ(steps("finetune = { tokens = 640 }\npretrain = { tokens = 641 }\n"), Steps(3, 2));
  EXPECT_EQ(steps("finetune = { steps = 9 }\n",
                  "[[override]]\ntask = \"fashion\"\nbudget = { finetune = { steps = 5 }, pretrain = { steps = 7 } }\n"),
            Steps(7, 5));
}

TEST(PlanValues, SizesAreOptions) {
  Parts parts;
  parts.architectures += "size = \"100K\"\noptions = { n_layers = 3 }\n";
  const OptionMap options = cell(plan_of(parts), "fashion/transformer/scratch@F").spec.architecture.options;
  EXPECT_EQ(options.at("d_model"), OptionValue(int64_t{48}));
  EXPECT_EQ(options.at("n_layers"), OptionValue(int64_t{3}));
}

TEST(PlanValues, EveryValueHasAnOrigin) {
  Parts parts;
  parts.architectures = "[[architecture]]\nname = \"s4d\"\nsize = \"100K\"\n";
  parts.rest = "[train]\nbatch = 16\n[[override]]\nstage = \"pretrain\"\ntrain = { clip = 2 }\n";
  const Plan plan = plan_of(parts);
  std::map<std::string, std::string> origins;
  for (const Origin& origin : origins_of(plan, cell(plan, "fashion/s4d/spt-masked@P+F"))) origins[origin.name] = origin.origin;
  EXPECT_THAT(origins.at("architecture.d_model"), HasSubstr("size 100K"));
  EXPECT_EQ(origins.at("architecture.n_layers"), "default");
  EXPECT_THAT(origins.at("stage.pretrain.clip"), HasSubstr("[[override]]"));
  EXPECT_EQ(origins.at("stage.finetune.clip"), "default");
  EXPECT_THAT(origins.at("stage.finetune.batch"), HasSubstr("m.toml:14:1 [train]"));
  EXPECT_EQ(origins.at("stage.finetune.lr"), "recipe of s4d: page 1");
  EXPECT_EQ(origins.at("stage.pretrain.objective.ratio"), "mask ratio of the task");
  EXPECT_THAT(origins.at("stage.pretrain.steps"), HasSubstr("[budget]"));
  const PlanCell& matched = cell(plan, "fashion/s4d/scratch@(P+F)");
  for (const Origin& origin : origins_of(plan, matched)) origins[origin.name] = origin.origin;
  EXPECT_EQ(origins.at("stage.finetune.steps"), "matched to spt-masked@P+F by steps");
}

TEST(PlanValues, ATrainingValueThatNoStageReadsIsRefused) {
  Parts parts;
  parts.rest = "[train]\ngamma = 0.5\n";
  EXPECT_THAT(error_of(parts), HasSubstr("gamma changes nothing: it needs schedule = multistep or plateau or step"));
  parts.rest = "[train]\ngamma = 0.5\n[stage.pretrain]\nschedule = \"plateau\"\n";
  EXPECT_EQ(error_of(parts), "");
  parts.rest = "[[override]]\nstage = \"finetune\"\ntrain = { momentum = 0.5 }\n";
  EXPECT_THAT(error_of(parts), HasSubstr("it needs optimizer = sgd"));
}

TEST(PlanValues, MilestonesThatAreNoSharesAreRefusedAtTheirPlace) {
  Parts parts;
  parts.rest = "[train]\nschedule = \"multistep\"\nmilestones = \"0.5, 2\"\n";
  EXPECT_THAT(error_of(parts), HasSubstr("m.toml:"));
  EXPECT_THAT(error_of(parts), HasSubstr("'2' is no number above 0 and below 1"));
}

TEST(Plan, AnArchitectureMayStartFromGivenWeights) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / fmt::format("spt-plan-weights-{}", ::getpid());
  write_file_atomically(file, "weights");
  Parts parts;
  parts.architectures += fmt::format("[[architecture]]\nname = \"transformer\"\nlabel = \"given\"\ncheckpoint = \"{}\"\n", file.string());
  const Plan plan = plan_of(parts);
  const PlanCell &given = cell(plan, "fashion/given+external/spt-masked@P+F"), &drawn = cell(plan, "fashion/transformer/spt-masked@P+F");
  EXPECT_EQ(given.spec.checkpoint, (GivenCheckpoint{file.string(), sha256("weights")}));
  EXPECT_EQ(drawn.spec.checkpoint, GivenCheckpoint{});
  EXPECT_NE(plan.job_key(given, 0), plan.job_key(drawn, 0));
  EXPECT_NE(given.stages[0], drawn.stages[0]);  // pretraining starts from them too
  EXPECT_THAT(plan.notes, testing::Contains(HasSubstr("conditional on one pretraining run")));
  const Origins origins = origins_of(plan, given);
  const auto origin = std::find_if(origins.begin(), origins.end(), [](const Origin& o) { return o.name == "checkpoint"; });
  ASSERT_NE(origin, origins.end());
  EXPECT_EQ(origin->value, OptionValue(sha256("weights")));
  EXPECT_THAT(origin->origin, HasSubstr(file.string()));
  const std::string key = plan.job_key(given, 0);
  write_file_atomically(file, "others");
  EXPECT_NE(plan_of(parts).job_key(cell(plan_of(parts), "fashion/given+external/spt-masked@P+F"), 0), key);
  std::filesystem::remove(file);
  EXPECT_THAT(error_of(parts), HasSubstr("there is no file of weights '" + file.string() + "'"));
  parts.architectures = "[[architecture]]\nname = \"transformer\"\ncheckpoint = \"\"\n";
  EXPECT_THAT(error_of(parts), HasSubstr("must name a file of weights"));
}

}  // namespace
}  // namespace spt
