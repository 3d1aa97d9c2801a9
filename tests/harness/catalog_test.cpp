#include "harness/catalog.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/json.h"

namespace spt {
namespace {

using nlohmann::json;

ComponentSpec component(const char* name) { return {name, 2, {{"a", true}, {"b", 1.0}, {"c", int64_t{-3}}, {"d", std::string("x")}}}; }

JobSpec job() {
  JobSpec spec;
  spec.architecture = component("s4d");
  spec.task = component("listops");
  spec.data_hash = "h";
  spec.stages.resize(1);
  spec.stages[0].name = "finetune";
  spec.stages[0].objective = {"supervised", 1, {}};
  spec.stages[0].steps = spec.stages[0].evaluations = 1;
  return spec;
}

Catalog catalog() {
  Catalog c{.build_id = "id",
            .libtorch = "2.13.0",
            .compiler = "gcc",
            .cuda = true,
            .architectures = {},
            .tasks = {},
            .objectives = {},
            .protocols = {},
            .recipes = {{"s4d", "x = 1\n"}}};
  const std::vector<OptionSchema> options = {{"rate", 1.0, {.effect = "e", .min = 0, .max = 2.5, .unit = "s"}},
                                             {"kind", std::string("a"), {.effect = "e", .choices = {"a", "b"}, .stage = "supervised"}}};
  c.architectures.push_back({"s4d", 3, "sum", "src", options, {{"causal", true}}, true, {{"100K", {{"d", int64_t{1}}}}, {"10K", {}}}});
  c.tasks.push_back({"listops", 1, "sum", "src", options, "copies"});
  c.objectives.push_back({"masked", 1, options});
  c.protocols.push_back({"spt-masked", 1, "sum", "src", options, true, {{"pretrain", "masked", {{"ratio", "rate"}}}}});
  return c;
}

DescribeQuery describe_query() {
  return {"data", {{"listops", component("x").options}}, {{component("a"), component("t"), component("o"), TrainOptions{.batch = 7}}}};
}

DescribeAnswer describe_answer() {
  DescribeAnswer answer;
  TaskAnswer task;
  task.data_hash = "h", task.mean_length = 20.25, task.higher_is_better = false, task.vocabulary = 17;
  answer.tasks = {task};
  answer.models = {ModelAnswer{"", 12, 10, 1e9, 640.5, 123'456, {{"body.w", {2, 3}, "matrix", 0.001, 0.05}}}};
  return answer;
}

ProbeQuery probe_query() { return {"data", "cpu", 2, 3, {job()}}; }

RunRequest run_request() {
  RunRequest request;
  request.job = job();
  request.stage_key = "key", request.attempt = 2, request.parent_dir = "../p", request.checkpoint_s = 0.5, request.resume_across = true;
  return request;
}

// Each type: its JSON, and the JSON of what is read from it.
struct Kind {
  const char* name;
  json good;
  std::function<json(const json&)> again;
};
std::vector<Kind> kinds() {
  const std::vector<std::vector<ProbeAnswer>> probes = {{{"", 1, 2, 0.013, 1e-4}, {"broken", 0, 0, 0, 0}}, {}};
  return {{"catalog", to_json(catalog()), [](const json& j) { return to_json(catalog_from_json(j, "here")); }},
          {"describe query", to_json(describe_query()), [](const json& j) { return to_json(describe_query_from_json(j, "here")); }},
          {"describe answer", to_json(describe_answer()), [](const json& j) { return to_json(describe_answer_from_json(j, "here")); }},
          {"probe query", to_json(probe_query()), [](const json& j) { return to_json(probe_query_from_json(j, "here")); }},
          {"probe answers", to_json(probes), [](const json& j) { return to_json(probe_answers_from_json(j, "here")); }},
          {"run request", to_json(run_request()), [](const json& j) { return to_json(run_request_from_json(j, "here")); }}};
}

TEST(CatalogJson, RoundTripsEveryType) {
  for (const Kind& kind : kinds())
    EXPECT_EQ(canonical(kind.again(parse_json(canonical(kind.good), "here"))), canonical(kind.good)) << kind.name;
}

TEST(CatalogJson, KeepsValuesNotOnlyText) {
  const Catalog read = catalog_from_json(to_json(catalog()), "here");
  EXPECT_EQ(read.architectures[0].sizes[0].first, "100K");
  EXPECT_EQ(read.architectures[0].sizes[0].second.at("d"), OptionValue(int64_t{1}));
  EXPECT_EQ(read.architectures[0].causal.at("causal"), OptionValue(true));
  EXPECT_EQ(read.tasks[0].leaks, "copies");
  EXPECT_EQ(read.tasks[0].options[0].info.max, 2.5);
  EXPECT_EQ(read.tasks[0].options[1].info.stage, "supervised");
  EXPECT_EQ(read.protocols[0].stages[0].options[0], std::make_pair(std::string("ratio"), std::string("rate")));
  EXPECT_EQ(describe_query_from_json(to_json(describe_query()), "here").models[0].train.batch, 7);
  EXPECT_EQ(run_request_from_json(to_json(run_request()), "here").job, job());
}

// Walks over a JSON value and spoils one place at a time: a key renamed, a key gone, a value of another type.
void spoil(const json& whole, const json::json_pointer& place, const std::function<void(const json&, const std::string&)>& check) {
  const json& here = whole.at(place);
  if (here.is_object() && place.to_string().find("/options") == std::string::npos) {
    for (const auto& [key, value] : here.items()) {
      json spoilt = whole;
      spoilt.at(place).erase(key);
      spoilt.at(place)[key + "x"] = value;
      check(spoilt, (place / key).to_string() + " renamed");
      spoilt = whole;
      spoilt.at(place)[key] = value.is_object() ? json(1) : json::object();
      check(spoilt, (place / key).to_string() + " of another type");
      spoil(whole, place / key, check);
    }
  }
  if (here.is_array())
    for (size_t i = 0; i < here.size(); ++i) spoil(whole, place / i, check);
}

TEST(CatalogJson, RefusesEverySpoiltPlace) {
  for (const Kind& kind : kinds()) {
    int places = 0;
    spoil(kind.good, json::json_pointer(), [&](const json& spoilt, const std::string& what) {
      if (what.find("/causal/") != std::string::npos || what.find("/sizes/") != std::string::npos ||
          what.find("/streams/") != std::string::npos)
        return;
      ++places;
      try {
        kind.again(spoilt);
        ADD_FAILURE() << kind.name << " takes " << what;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("here"), std::string::npos) << e.what();
      }
    });
    EXPECT_GT(places, 5) << kind.name;
  }
}

TEST(CatalogJson, RefusesAStageThatTheJobDoesNotHave) {
  json request = to_json(run_request());
  request["stage"] = 1;
  EXPECT_THROW(run_request_from_json(request, "here"), Error);
  request["stage"] = -1;
  EXPECT_THROW(run_request_from_json(request, "here"), Error);
}

}  // namespace
}  // namespace spt
