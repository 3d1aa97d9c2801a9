#include "harness/worker/describe.h"

#include <gtest/gtest.h>

#include "harness/base/json.h"
#include "harness/catalog.h"
#include "harness/worker/probe.h"
#include "harness/worker/process.h"
#include "tests/worker/doubles.h"
#include "tests/worker/stage_folder.h"

namespace spt::worker {
namespace {

using results::StartEvent;
using test::Folder;

TEST(Describe, CatalogRoundTripsAndNamesWhatIsRegistered) {
  const Catalog catalog = make_catalog();
  const Catalog back = catalog_from_json(parse_json(canonical(to_json(catalog)), "catalog"), "catalog");
  ASSERT_EQ(back.protocols.size(), 3u);
  EXPECT_EQ(back.protocols[2].stages[0].options, (std::vector<std::pair<std::string, std::string>>{{"ratio", "ratio"}}));
  EXPECT_EQ(back.objectives.size(), 3u);
  EXPECT_EQ(back.recipes, catalog.recipes);
  EXPECT_EQ(back.recipes.size(), back.architectures.size());
  EXPECT_EQ(back.build_id, catalog.build_id);
}

TEST(Describe, CountsMatchWhatARunReports) {
  Folder folder("describe");
  const JobSpec job = test::tiny_job("classification");
  ASSERT_TRUE(folder.run(job, 0));
  DescribeQuery query;
  query.tasks = {{job.task.name, job.task.options}, {"tiny-nothing", {}}};
  query.models = {{job.architecture, job.task, job.stages[0].objective, job.stages[0].train},
                  {job.architecture, job.task, {.name = "causal", .version = 1, .options = {}}, job.stages[0].train}};
  const DescribeAnswer answer = describe(query, test::tiny_registry());
  ASSERT_EQ(answer.tasks.size(), 2u);
  EXPECT_EQ(answer.tasks[0].error, "");
  EXPECT_EQ(answer.tasks[0].metric, "accuracy");
  EXPECT_EQ(answer.tasks[0].train_size, 40);
  EXPECT_NE(answer.tasks[1].error, "");
  ASSERT_EQ(answer.models.size(), 2u);
  EXPECT_EQ(answer.models[0].error, "");
  EXPECT_EQ(answer.models[0].parameters, folder.events<StartEvent>(0)[0].parameters);
  EXPECT_EQ(answer.models[0].parameters_body, folder.events<StartEvent>(0)[0].parameters_body);
  EXPECT_NEAR(answer.models[0].flops_per_step * 23 / folder.done(0).flops, 1, 0.05);
  EXPECT_NEAR(answer.models[0].tokens_per_step * 23 / static_cast<double>(folder.done(0).tokens), 1, 0.05);
  ASSERT_EQ(answer.models[0].groups.size(), 5u);
  EXPECT_EQ(answer.models[0].groups[0].tensor, "encoder.weight");
  EXPECT_EQ(answer.models[0].groups[0].role, "embedding");
  EXPECT_EQ(answer.models[0].groups[0].weight_decay, 0);
  EXPECT_NE(answer.models[1].error.find("causal"), std::string::npos);
}

TEST(Probe, TimesEveryStageAndStoresNothing) {
  ProbeQuery query;
  query.jobs = {test::tiny_job("classification", "masked"), test::tiny_job("pairs")};
  query.jobs[1].data_hash = "other";
  const auto answers = probe(query, test::tiny_registry());
  ASSERT_EQ(answers.size(), 2u);
  ASSERT_EQ(answers[0].size(), 2u);
  for (const ProbeAnswer& stage : answers[0]) {
    EXPECT_EQ(stage.error, "");
    EXPECT_GT(stage.step_s, 0);
    EXPECT_GT(stage.evaluate_example_s, 0);
    EXPECT_GT(stage.startup_s, 0);
  }
  EXPECT_NE(answers[1][0].error, "");
}

TEST(Process, KnowsItsAgeAndItsPeak) {
  EXPECT_GT(process_age_s(), 0);
  EXPECT_LT(process_age_s(), 3600);
  EXPECT_GT(peak_memory(at::kCPU), 10 << 20);
}

}  // namespace
}  // namespace spt::worker
