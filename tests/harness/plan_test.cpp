#include "harness/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "tests/harness/plan_parts.h"

namespace spt {
namespace {

using plan_parts::arm_names;
using plan_parts::cell;
using plan_parts::error_of;
using plan_parts::FakeWorker;
using plan_parts::keys;
using plan_parts::Parts;
using plan_parts::plan_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Plan, HasTheThreeArmsAndTheBaselines) {
  const Plan plan = plan_of({});
  EXPECT_THAT(arm_names(plan), ElementsAre("scratch@F", "spt-masked@P+F", "scratch@(P+F)"));
  EXPECT_THAT(arm_names(plan, "majority"), ElementsAre("scratch@F"));
  EXPECT_THAT(arm_names(plan, "linear"), ElementsAre()) << "it says that it needs tokens";
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("linear is left out on task fashion: needs tokens")));
  EXPECT_EQ(cell(plan, "fashion/transformer/scratch@F").spec.stages.at(0).steps, 100);
  const PlanCell& spt = cell(plan, "fashion/transformer/spt-masked@P+F");
  ASSERT_EQ(spt.spec.stages.size(), 2u);
  EXPECT_EQ(spt.spec.stages[0].steps, 300);
  EXPECT_EQ(spt.spec.stages[1].steps, 100);
  EXPECT_EQ(spt.spec.stages[0].objective.options.at("ratio"), OptionValue(0.15)) << "the task's own";
  const PlanCell& matched = cell(plan, "fashion/transformer/scratch@(P+F)");
  EXPECT_EQ(matched.spec.stages.at(0).steps, 400);
  EXPECT_EQ(matched.residual, 0.0);
  EXPECT_EQ(plan.job_count(), 8u);
}

TEST(Plan, JobRowsNameArmsKindsAndPairs) {
  const Plan plan = plan_of({});
  std::map<std::string, results::PlannedJob> jobs;
  for (const results::PlannedJob& job : planned_jobs(plan)) jobs[job.name] = job;
  ASSERT_EQ(jobs.size(), 8u);
  const results::PlannedJob& matched = jobs.at("fashion/transformer/scratch@(P+F)/seed=2");
  EXPECT_EQ(matched.arm_kind, "matched");
  EXPECT_EQ(matched.pairs_with, "spt-masked@P+F");
  EXPECT_EQ(matched.protocol, "scratch");
  EXPECT_EQ(matched.match_cost, 400);
  const results::PlannedJob& spt = jobs.at("fashion/transformer/spt-masked@P+F/seed=1");
  EXPECT_EQ(spt.stages.size(), 2u);
  EXPECT_EQ(spt.stages.back(), spt.key);
  EXPECT_EQ(spt.flops, 32 * 1000.0 * (2 * 300 + 100));
  EXPECT_TRUE(jobs.at("fashion/majority/scratch@F/seed=1").trivial);
  EXPECT_EQ(jobs.at("fashion/majority/scratch@F/seed=1").pairs_with, "");
}

TEST(Plan, StageRowsCarryASpecWithTheSameKey) {
  const Plan plan = plan_of({});
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const results::PlannedStage row = planned_stage(plan, i);
    const JobSpec spec = job_from_json(parse_json(row.spec, "spec"), "spec");
    EXPECT_EQ(stage_key(spec, static_cast<size_t>(row.index)), row.key);
    EXPECT_EQ(row.parent, row.index > 0 ? stage_key(spec, 0) : "");
  }
}

TEST(Plan, OnePretrainingStageServesEveryJobThatNeedsIt) {
  Parts parts;
  parts.head = "seeds = [1]\n";
  parts.rest =
      "[[protocol]]\nname = \"spt-masked\"\n[[protocol]]\nname = \"spt-masked\"\nlabel = \"other\"\n[[override]]\nprotocol = "
      "\"other\"\nstage = \"finetune\"\ntrain = { lr = 0.5 }\n";
  const Plan plan = plan_of(parts);
  const PlanCell& a = cell(plan, "fashion/transformer/spt-masked@P+F");
  const PlanCell& b = cell(plan, "fashion/transformer/other@P+F");
  EXPECT_EQ(a.stages[0], b.stages[0]);
  EXPECT_NE(a.stages[1], b.stages[1]);
  EXPECT_EQ(plan.stages[a.stages[1]].parent, static_cast<int64_t>(a.stages[0]));
  EXPECT_EQ(plan.stages[b.stages[1]].parent, static_cast<int64_t>(a.stages[0]));
}

TEST(Plan, EqualSpecsAreOneStageUnderTwoLabels) {
  Parts parts;
  parts.architectures += "[[architecture]]\nname = \"transformer\"\nlabel = \"again\"\noptions = { n_layers = 2 }\n";
  const Plan plan = plan_of(parts), once = plan_of({});
  EXPECT_EQ(keys(plan), keys(once));
  EXPECT_EQ(plan.stages.size(), once.stages.size());
  EXPECT_EQ(plan.job_count(), once.job_count() + 6);
}

TEST(Plan, LabelsAndAnalysisChangeNoKeyButTheLearningRateDoes) {
  const std::set<std::string> keys_before = keys(plan_of({}));
  Parts labels;
  labels.architectures += "label = \"renamed\"\n";
  labels.tasks += "label = \"pictures\"\n";
  labels.rest = "[analysis]\nmargin = 0.1\n";
  EXPECT_EQ(keys(plan_of(labels)), keys_before);
  Parts rate;
  rate.rest = "[stage.finetune]\nlr = 0.5\n";
  const std::set<std::string> after = keys(plan_of(rate));
  std::vector<std::string> shared;
  std::set_intersection(after.begin(), after.end(), keys_before.begin(), keys_before.end(), std::back_inserter(shared));
  EXPECT_EQ(shared.size(), 2u) << "the pretraining stages of two seeds";
}

TEST(Plan, ASupervisedTaskOptionLeavesPretrainingAlone) {
  Parts parts;
  parts.tasks += "options = { loss = \"mse\" }\n";
  const Plan plan = plan_of(parts), before = plan_of({});
  const std::string name = "fashion/transformer/spt-masked@P+F";
  EXPECT_EQ(plan.stages[cell(plan, name).stages[0]].key, before.stages[cell(before, name).stages[0]].key);
  EXPECT_NE(plan.job_key(cell(plan, name), 0), before.job_key(cell(before, name), 0));
}

TEST(Plan, CausalProtocolsHaveScratchArmsOfTheirOwn) {
  Parts parts;
  parts.head = "seeds = [1]\nprotocols = [\"scratch\", \"spt-masked\", \"spt-causal\"]\n";
  parts.budget += "match = [\"steps\", \"flops\"]\n";
  const Plan plan = plan_of(parts);
  EXPECT_THAT(arm_names(plan), ElementsAre("scratch@F", "spt-masked@P+F", "scratch@(P+F)", "scratch@(P+F):flops", "spt-causal@P+F",
                                           "scratch-causal@F", "scratch-causal@(P+F)", "scratch-causal@(P+F):flops"));
  for (const PlanCell& c : plan.cells) {
    if (c.trivial) continue;
    const bool causal = plan.arm_name(c).find("causal") != std::string::npos;
    EXPECT_EQ(c.spec.architecture.options.at("causal"), OptionValue(causal)) << plan.arm_name(c);
  }
  const results::PlannedJob own = planned_job(plan, cell(plan, "fashion/transformer/scratch-causal@F"), 0);
  EXPECT_EQ(own.pairs_with, "spt-causal@P+F");
  EXPECT_EQ(own.arm_kind, "scratch");
  EXPECT_THAT(arm_names(plan, "majority"), ElementsAre("scratch@F"));
  Parts gru = parts;
  gru.architectures = "[[architecture]]\nname = \"gru\"\n";
  EXPECT_THAT(error_of(gru), HasSubstr("'gru' cannot be causal"));
}

TEST(Plan, ProtocolsOfOneScratchArmShareIt) {
  Parts parts;
  parts.head = "seeds = [1]\n";
  parts.rest =
      "[[protocol]]\nname = \"scratch\"\n[[protocol]]\nname = \"spt-masked\"\n[[protocol]]\nname = \"spt-masked\"\nlabel = "
      "\"half\"\noptions = { ratio = 0.5 }\n";
  parts.budget += "match = [\"steps\", \"flops\"]\n";
  const Plan plan = plan_of(parts);
  EXPECT_THAT(arm_names(plan), ElementsAre("scratch@F", "spt-masked@P+F", "scratch@(P+F)", "scratch@(P+F):flops:spt-masked", "half@P+F",
                                           "scratch@(P+F)", "scratch@(P+F):flops:half"));
  std::set<std::string> shared;
  std::set<std::string> pairs;
  for (const results::PlannedJob& job : planned_jobs(plan)) {
    if (job.arm != "scratch@(P+F)") continue;
    shared.insert(job.key);
    pairs.insert(job.pairs_with);
  }
  EXPECT_EQ(shared.size(), 1u);
  EXPECT_EQ(pairs, (std::set<std::string>{"spt-masked@P+F", "half@P+F"}));
}

TEST(Plan, AnInitOfItsOwnHasScratchArmsOfItsOwn) {
  Parts parts;
  parts.head = "seeds = [1]\n";
  parts.rest = "[[protocol]]\nname = \"scratch\"\n[[protocol]]\nname = \"spt-masked\"\noptions = { init = \"normal\" }\n";
  const Plan plan = plan_of(parts);
  EXPECT_THAT(arm_names(plan), ElementsAre("scratch@F", "spt-masked@P+F", "scratch-normal@F", "scratch-normal@(P+F)"));
  EXPECT_EQ(cell(plan, "fashion/transformer/scratch-normal@(P+F)").spec.init, "normal");
  EXPECT_EQ(cell(plan, "fashion/transformer/scratch@F").spec.init, "default");
}

TEST(Plan, TheInitIsAnAxisLikeAnyOther) {
  Parts parts;
  parts.head = "seeds = [1]\n";
  parts.rest =
      "[[protocol]]\nname = \"scratch\"\n[[protocol]]\nname = \"scratch\"\nlabel = \"scratch+normal\"\noptions = { init = \"normal\" }\n"
      "[[protocol]]\nname = \"spt-masked\"\n[[protocol]]\nname = \"spt-masked\"\nlabel = \"spt+normal\"\noptions = { init = \"normal\" }\n";
  const Plan plan = plan_of(parts);
  EXPECT_THAT(arm_names(plan), ElementsAre("scratch@F", "scratch+normal@F", "spt-masked@P+F", "scratch@(P+F)", "spt+normal@P+F",
                                           "scratch+normal@F", "scratch+normal@(P+F)"));
  std::set<std::string> normal_keys;
  for (const PlanCell& c : plan.cells) {
    if (plan.architectures[c.architecture].label != "transformer") {
      EXPECT_EQ(c.spec.init, "default") << "a baseline";
      continue;
    }
    const bool is_normal = plan.arm_name(c).find("+normal") != std::string::npos;
    EXPECT_EQ(c.spec.init, is_normal ? "normal" : "default") << plan.cell_name(c);
    if (plan.arm_name(c) == "scratch+normal@F") normal_keys.insert(plan.job_key(c, 0));
  }
  EXPECT_EQ(normal_keys.size(), 1u) << "the arm of the matrix and the partner of spt+normal are one job";
  const PlanCell& with = cell(plan, "fashion/transformer/spt+normal@P+F");
  EXPECT_NE(plan.stages[with.stages[0]].key, plan.stages[cell(plan, "fashion/transformer/spt-masked@P+F").stages[0]].key);
  const Origins origins = origins_of(plan, with);
  const auto init = std::find_if(origins.begin(), origins.end(), [](const Origin& o) { return o.name == "init"; });
  ASSERT_NE(init, origins.end());
  EXPECT_THAT(init->origin, HasSubstr("m.toml:"));
}

TEST(Plan, UnlabelledInputsAreNamed) {
  Parts parts;
  parts.head = "seeds = [1]\n";
  parts.rest = "[[protocol]]\nname = \"spt-masked\"\noptions = { pretrain_inputs = \"train\" }\n";
  const Plan plan = plan_of(parts);
  const PlanCell& c = cell(plan, "fashion/transformer/spt-masked+unlabelled@P+F");
  EXPECT_EQ(c.spec.stages[0].inputs, "train");
  EXPECT_EQ(c.spec.stages[1].inputs, "subset");
  parts.budget = "[budget]\nfinetune = { epochs = 1 }\npretrain = { epochs = 1 }\nevaluations = 1\n";
  EXPECT_THAT(error_of(parts), HasSubstr("not known here"));
}

TEST(Plan, AskedAboutEachModelOnceWhateverTheRates) {
  FakeWorker worker;
  Parts parts;
  parts.rest = "[stage.pretrain]\nlr = 0.3\ndropout = 0.1\n";
  plan_of(parts, &worker);
  EXPECT_EQ(worker.describe_calls, 2);
  ASSERT_EQ(worker.asked_models.size(), 4u) << "transformer masked and supervised, two baselines";
  const TrainOptions& supervised = worker.asked_models[0].train;
  const auto masked = std::find_if(worker.asked_models.begin(), worker.asked_models.end(),
                                   [](const ModelQuery& m) { return m.objective.name == "masked"; });
  ASSERT_NE(masked, worker.asked_models.end());
  EXPECT_EQ(masked->train.dropout, 0.1) << "it needs memory";
  EXPECT_EQ(masked->train.lr, supervised.lr) << "the rate changes nothing that is asked";
}

TEST(Plan, WrongNamesSuggestAtTheirPlace) {
  const auto with = [](auto change) {
    Parts parts;
    change(parts);
    return error_of(parts);
  };
  EXPECT_THAT(with([](Parts& p) { p.architectures = "[[architecture]]\nname = \"transfomer\"\n"; }),
              HasSubstr("m.toml:8:1: unknown architecture 'transfomer'; did you mean 'transformer'?"));
  EXPECT_THAT(with([](Parts& p) { p.tasks = "[[task]]\nname = \"fasion\"\n"; }), HasSubstr("did you mean 'fashion'?"));
  EXPECT_THAT(with([](Parts& p) { p.head = "seeds = [1]\nprotocols = [\"spt-maked\"]\n"; }), HasSubstr("did you mean 'spt-masked'?"));
  EXPECT_THAT(with([](Parts& p) { p.architectures += "options = { n_layer = 3 }\n"; }),
              HasSubstr("m.toml:10:13 [[architecture]]: unknown option of transformer 'n_layer'; did you mean 'n_layers'?"));
  EXPECT_THAT(with([](Parts& p) { p.architectures += "options = { n_layers = 0 }\n"; }), HasSubstr("at least 1"));
  EXPECT_THAT(with([](Parts& p) { p.tasks += "options = { patch = 1.5 }\n"; }), HasSubstr("must be int"));
  EXPECT_THAT(with([](Parts& p) { p.architectures += "size = \"200K\"\n"; }), HasSubstr("unknown size of transformer '200K'"));
  EXPECT_THAT(with([](Parts& p) { p.architectures += "size = \"100K\"\noptions = { d_model = 8 }\n"; }),
              HasSubstr("is what size \"100K\" sets"));
  EXPECT_THAT(with([](Parts& p) { p.rest = "[[override]]\narchitecture = \"s4d\"\ntrain = { lr = 1 }\n"; }),
              HasSubstr("unknown architecture label 's4d'"));
  EXPECT_THAT(with([](Parts& p) { p.rest = "[[override]]\nprotocol = \"scrach\"\ntrain = { lr = 1 }\n"; }),
              HasSubstr("did you mean 'scratch'?"));
  EXPECT_THAT(with([](Parts& p) { p.tasks = "[[task]]\nname = \"broken\"\n"; }), HasSubstr("its data are not there"));
  EXPECT_THAT(with([](Parts& p) { p.head += "profile = \"paper\"\n"; }), HasSubstr("paper"));
  EXPECT_THAT(with([](Parts& p) { p.budget = "[budget]\nfinetune = { steps = 5 }\n"; }), HasSubstr("no room for 20 evaluations"));
}

}  // namespace
}  // namespace spt
