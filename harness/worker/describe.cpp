#include "harness/worker/describe.h"

#include <torch/torch.h>

#include <map>
#include <new>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/worker/memory.h"
#include "harness/worker/process.h"
#include "harness/worker/stamp.h"
#include "protocols/protocol.h"

namespace spt::worker {
namespace {

TaskAnswer describe_task(const tasks::TaskFacts& facts) {
  TaskAnswer answer;
  answer.kind = facts.kind;
  answer.data_hash = facts.data_hash;
  answer.data_source = facts.data_source;
  answer.partial = facts.partial;
  answer.values = facts.channels > 0;
  answer.vocabulary = facts.vocabulary;
  answer.channels = facts.channels;
  answer.max_length = facts.max_length;
  answer.outputs = facts.outputs;
  answer.mean_length = mean_length(facts.train_lengths);
  answer.mask_ratio = facts.mask_ratio;
  answer.train_size = facts.train_size;
  answer.validation_size = facts.validation_size;
  answer.test_size = facts.test_size;
  SPT_CHECK(!facts.metrics.empty(), "a task without a metric");
  answer.metric = facts.metrics.front().name;
  answer.unit = facts.metrics.front().unit;
  answer.higher_is_better = facts.metrics.front().higher_is_better;
  return answer;
}

ModelAnswer describe_model(const Registry& registry, const ModelQuery& query, const tasks::TaskFacts& facts) {
  const models::Architecture& architecture = registry.architecture(query.architecture.name);
  const auto objective =
      protocols::make_objective(query.objective.name, query.objective.options, facts, {query.train.pool, query.train.head_hidden});
  check_causal(architecture, query.architecture.options, query.objective.name);
  const models::ModelSpec spec = model_spec(architecture, query.architecture.options, *objective, facts, query.train, query.profile);
  const auto model = models::build_model(architecture, spec);
  ModelAnswer answer;
  answer.parameters = parameter_count(*model);
  answer.parameters_body = body_parameter_count(*model);
  for (const protocols::TrainedTensor& t : protocols::trained_tensors(*model, optimizer_rules(query.train, query.profile)))
    answer.groups.push_back({t.name, t.tensor.sizes().vec(), protocols::role_name(t.role), t.rule.lr, t.rule.weight_decay});
  answer.flops_per_step = StageCost(architecture, spec).expected_step(facts.train_lengths, *objective, facts.documents, query.train);
  answer.tokens_per_step = static_cast<double>(query.train.batch * facts.documents) * mean_length(facts.train_lengths);
  if (query.memory) answer.peak_memory = estimated_memory({architecture, spec, *objective, facts, query.train, query.profile});
  return answer;
}

/// Facts of a task, or why there are none; asked once for each set of options.
class FactsCache {
 public:
  FactsCache(const Registry& registry, std::filesystem::path data_root) : registry_(registry), data_root_(std::move(data_root)) {}

  const tasks::TaskFacts& facts(const std::string& name, const OptionMap& given) {
    const tasks::Task& task = registry_.task(name);
    const OptionMap options = complete(task.options, given, fmt::format("task {}", name));
    const std::string key = name + canonical(options_to_json(options));
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (task.validate) task.validate(options);
    return known_.emplace(key, task.facts(options, data_root_)).first->second;
  }

 private:
  const Registry& registry_;
  const std::filesystem::path data_root_;
  std::map<std::string, tasks::TaskFacts> known_;
};

}  // namespace

Catalog make_catalog() {
  Catalog catalog;
  catalog.build_id = build_id();
  catalog.libtorch = libtorch_version();
  catalog.compiler = compiler_version();
  catalog.cuda = has_cuda_half();
  for (const models::Architecture& a : models::architectures())
    catalog.architectures.push_back({a.name, a.version, a.summary, a.source, a.options, a.causal, a.trivial, a.sizes});
  for (const tasks::Task& t : tasks::tasks()) catalog.tasks.push_back({t.name, t.version, t.summary, t.source, t.options, t.leaks});
  for (const protocols::ObjectiveFacts& o : protocols::objectives()) catalog.objectives.push_back({o.name, o.version, o.options});
  for (const protocols::Protocol& p : protocols::protocols()) {
    ProtocolEntry entry{p.name, p.version, p.summary, p.source, p.options, p.causal, {}};
    for (const protocols::StageTemplate& stage : p.stages) entry.stages.push_back({stage.name, stage.objective, stage.options});
    catalog.protocols.push_back(std::move(entry));
  }
  for (const auto& [name, text] : protocols::recipe_files()) catalog.recipes.emplace_back(name, text);
  return catalog;
}

DescribeAnswer describe(const DescribeQuery& query, const Registry& registry) {
  FactsCache cache(registry, query.data_root);
  DescribeAnswer answer;
  for (const TaskQuery& task : query.tasks) {
    try {
      answer.tasks.push_back(describe_task(cache.facts(task.name, task.options)));
    } catch (const Error& error) {  // an answer to this query, not an end to the others
      answer.tasks.emplace_back().error = error.what();
    }
  }
  for (const ModelQuery& model : query.models) {
    try {
      answer.models.push_back(describe_model(registry, model, cache.facts(model.task.name, model.task.options)));
    } catch (const Error& error) {
      answer.models.emplace_back().error = error.what();
    } catch (const c10::Error& error) {  // such as no memory for it
      answer.models.emplace_back().error = error.what_without_backtrace();
    } catch (const std::bad_alloc&) {
      answer.models.emplace_back().error = "there is not enough memory to build it";
    }
  }
  return answer;
}

}  // namespace spt::worker
