#include "harness/job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace spt {
namespace {

JobSpec example() {
  JobSpec spec;
  spec.architecture = {"transformer", 1, {{"d_model", int64_t{32}}, {"norm", std::string("pre \"x\"")}, {"rate", 1.0}}};
  spec.task = {"fashion", 2, {{"patch", int64_t{4}}, {"loss", std::string("mae")}}};
  spec.supervised_options = {"loss"};
  spec.data_hash = "abc";
  StageSpec pretrain{.name = "pretrain", .objective = {"masked", 1, {{"ratio", 0.5}}}, .train = {}, .steps = 1200, .evaluations = 10};
  StageSpec finetune{.name = "finetune", .objective = {"supervised", 1, {}}, .train = {}, .steps = 400, .evaluations = 10};
  spec.stages = {pretrain, finetune};
  spec.seed = 3;
  return spec;
}

TEST(Job, RoundTripsThroughJson) {
  JobSpec spec = example();
  spec.streams = {{"init", 18446744073709551615ull}};
  spec.stages[0].train.lr = 3e-4;
  EXPECT_EQ(job_from_json(parse_json(canonical(to_json(spec)), "test"), "test"), spec);
}

TEST(Job, RefusesWhatItDoesNotKnow) {
  const nlohmann::json good = to_json(example());
  for (const auto& [key, value] : good.items()) {
    nlohmann::json missing = good;
    missing.erase(key);
    EXPECT_THROW(job_from_json(missing, "test"), Error) << key;
    nlohmann::json renamed = missing;
    renamed[key + "x"] = value;
    EXPECT_THROW(job_from_json(renamed, "test"), Error) << key;
    nlohmann::json wrong = good;
    wrong[key] = value.is_number() ? nlohmann::json("text") : nlohmann::json(-1);
    EXPECT_THROW(job_from_json(wrong, "test"), Error) << key;
  }
  nlohmann::json extra = good;
  extra["stages"][0]["train"]["learning_rate"] = 1.0;
  EXPECT_THROW(job_from_json(extra, "test"), Error);
  nlohmann::json fewer = good;
  fewer["stages"][0]["train"].erase("lr");
  EXPECT_THROW(job_from_json(fewer, "test"), Error);
}

TEST(Job, SpellsItsKeyAsCanonicalJson) {
  for (size_t stage : {0, 1}) {
    const std::string cell = cell_text(example(), stage);
    EXPECT_EQ(cell, canonical(parse_json(cell, "test")));
  }
  EXPECT_EQ(key_text("{}", 3, {{"init", 7}}), "{}\n{\"seed\":3,\"streams\":{\"init\":7}}");
}

// A change of this key makes every stored result "missing": raise a version instead, unless the format of keys changed on purpose.
TEST(Job, KeyIsGolden) {
  EXPECT_EQ(stage_key(example(), 0), "ac6907db5bde15cca405c0b503bc5880f75ea75cdafa8273a85fb716a909daeb");
  EXPECT_EQ(job_key(example()), "874e50e5c7b60d9e05b7285df706e8b30e4eb372c3eefd51cf10b7add3283f1d");
}

TEST(Job, HasTheContentOfGivenWeightsInItsKeyAndNotTheirPlace) {
  JobSpec spec = example();
  spec.checkpoint = {"a/weights.safetensors", "1234"};
  EXPECT_EQ(job_from_json(parse_json(canonical(to_json(spec)), "test"), "test"), spec);
  for (size_t stage : {0, 1}) {
    const std::string cell = cell_text(spec, stage);
    EXPECT_EQ(cell, canonical(parse_json(cell, "test")));
    EXPECT_EQ(cell.find("weights.safetensors"), std::string::npos);
  }
  const std::string key = job_key(spec);
  EXPECT_NE(key, job_key(example()));
  spec.checkpoint.file = "b/weights.safetensors";
  EXPECT_EQ(job_key(spec), key);
  spec.checkpoint.sha256 = "1235";
  EXPECT_NE(job_key(spec), key);
  nlohmann::json without = to_json(spec);
  without["checkpoint"]["sha256"] = "";
  EXPECT_THROW(job_from_json(without, "test"), Error);
}

TEST(Job, WhatTheOptimizerAndTheScheduleDoNotReadIsInNoKey) {
  const auto key_with = [](auto change) {
    JobSpec spec = example();
    change(spec.stages[1].train);
    EXPECT_EQ(job_key(job_from_json(parse_json(canonical(to_json(spec)), "test"), "test")), job_key(spec));
    return job_key(spec);
  };
  const auto unchanged = key_with([](TrainOptions&) {});
  EXPECT_EQ(key_with([](TrainOptions& t) { t.gamma = 0.5, t.patience = 9, t.milestones = "0.1", t.drop_every = 0.1, t.momentum = 0.1; }),
            unchanged);
  const auto stepped = key_with([](TrainOptions& t) { t.schedule = "multistep"; });
  EXPECT_NE(stepped, unchanged);
  EXPECT_NE(key_with([](TrainOptions& t) { t.schedule = "multistep", t.gamma = 0.5; }), stepped);
  EXPECT_NE(key_with([](TrainOptions& t) { t.schedule = "multistep", t.milestones = "0.1"; }), stepped);
  EXPECT_EQ(key_with([](TrainOptions& t) { t.schedule = "multistep", t.patience = 9; }), stepped);
  const auto sgd = key_with([](TrainOptions& t) { t.optimizer = "sgd"; });
  EXPECT_EQ(key_with([](TrainOptions& t) { t.optimizer = "sgd", t.beta2 = 0.9; }), sgd);
  EXPECT_NE(key_with([](TrainOptions& t) { t.optimizer = "sgd", t.momentum = 0.5; }), sgd);
}

TEST(Job, AStoredSpecHoldsWhatIsReadAndNothingElse) {
  nlohmann::json spec = to_json(example());
  EXPECT_FALSE(spec["stages"][0]["train"].contains("gamma"));
  spec["stages"][0]["train"]["gamma"] = 0.5;
  EXPECT_THROW(job_from_json(spec, "test"), Error);
  spec["stages"][0]["train"]["schedule"] = "plateau";
  EXPECT_THROW(job_from_json(spec, "test"), Error) << "patience is missing";
  spec["stages"][0]["train"]["patience"] = 2;
  EXPECT_EQ(job_from_json(spec, "test").stages[0].train.patience, 2);
}

TEST(Job, MilestonesAreSharesBetweenZeroAndOne) {
  EXPECT_EQ(milestone_shares("0.5, 0.75", "here"), (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(milestone_shares(" .25 ", "here"), (std::vector<double>{0.25}));
  for (const char* wrong : {"", "0.5,", "0.5 0.75", "0", "1", "-0.5", "half", "0.5,nan"})
    EXPECT_THROW(milestone_shares(wrong, "here"), Error) << wrong;
}

TEST(Job, PretrainingKeyIgnoresWhatOnlySupervisionReads) {
  const JobSpec spec = example();
  const auto changed = [&](auto change) {
    JobSpec other = example();
    change(other);
    return std::pair(stage_key(other, 0) != stage_key(spec, 0), job_key(other) != job_key(spec));
  };
  using Changes = std::pair<bool, bool>;
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[1].train.lr = 1; }), Changes(false, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[1].steps = 7; }), Changes(false, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[1].train.pool = "max"; }), Changes(false, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[0].train.pool = "max"; }), Changes(false, false)) << "pretraining never pools";
  EXPECT_EQ(changed([](JobSpec& s) { s.task.options["loss"] = std::string("mse"); }), Changes(false, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.task.options["patch"] = int64_t{2}; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[0].train.lr = 1; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.stages[0].inputs = "train"; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.data_hash = "abd"; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.seed = 4; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.streams["init"] = 4; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.architecture.version = 2; }), Changes(true, true));
  EXPECT_EQ(changed([](JobSpec& s) { s.init = "normal"; }), Changes(true, true));
}

}  // namespace
}  // namespace spt
