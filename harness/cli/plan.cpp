#include "harness/plan.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <thread>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "harness/estimate.h"
#include "harness/work.h"

namespace spt::cli {
namespace {

struct PlanFlags {
  std::string matrix, database = "spt-bench.db", data, worker, show;
  bool json = false, no_probe = false;
  int64_t threads = 1, slots = 0;
};

/// 1234567 -> "1.23 M".
std::string with_prefix(double value) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t power = 0;
  for (; std::abs(value) >= 999.5 && power + 1 < std::size(kPrefixes); ++power) value /= 1000;
  return fmt::format("{:.3g}{}", value, kPrefixes[power]);
}

std::string bytes_text(int64_t bytes) {
  const std::string text = with_prefix(static_cast<double>(bytes));
  return text + (text.find(' ') == std::string::npos ? " B" : "B");
}

/// What planning needs and what came out.
struct Planned {
  Plan plan;
  Work work;
  Estimate estimate;
};

/// Of the stage that needs most.
int64_t peak_memory(const Plan& plan, const PlanCell& cell) {
  int64_t most = 0;
  for (const StageCost& cost : cell.costs) most = std::max(most, plan.models[cost.model].peak_memory);
  return most;
}

std::string steps_text(const PlanCell& cell) {
  std::vector<int64_t> steps;
  for (const StageSpec& stage : cell.spec.stages) steps.push_back(stage.steps);
  return fmt::format("{}", fmt::join(steps, " + "));
}

void print_cells(const Planned& planned, Context& context) {
  const Plan& plan = planned.plan;
  size_t width = 4;
  for (const PlanCell& cell : plan.cells) width = std::max(width, plan.cell_name(cell).size());
  context.out << fmt::format("\n{:<{}}  {:>4}  {:>11}  {:>10}  {:>7}  {:>8}  {:>8}\n", "cell", width, "done", "steps", "parameters",
                             "memory", "FLOPs", "residual");
  for (const PlanCell& cell : plan.cells) {
    int64_t done = 0;
    double flops = 0;
    for (size_t seed = 0; seed < plan.matrix.seeds.size(); ++seed)
      done += planned.work.stages[cell.stages.back() + seed] == StageWork::kDone;
    for (const StageCost& cost : cell.costs) flops += cost.flops;
    context.out << fmt::format("{:<{}}  {:>4}  {:>11}  {:>10}  {:>7}  {:>8}  {:>8}\n", plan.cell_name(cell), width,
                               fmt::format("{}/{}", done, plan.matrix.seeds.size()), steps_text(cell),
                               with_prefix(static_cast<double>(plan.models[cell.costs.back().model].parameters)),
                               bytes_text(peak_memory(plan, cell)), with_prefix(flops),
                               cell.residual ? fmt::format("{:.2f} %", 100 * *cell.residual) : "-");
  }
}

void print_summary(const Planned& planned, const PlanFlags& flags, Context& context) {
  const auto& [plan, work, estimate] = planned;
  const Matrix& matrix = plan.matrix;
  size_t pretraining = 0, users = 0;
  for (const PlanStage& stage : plan.stages) pretraining += plan.cells[stage.cell].spec.stages[stage.index].objective.name != "supervised";
  for (const PlanCell& cell : plan.cells) users += cell.spec.stages.size() > 1 ? matrix.seeds.size() : 0;
  context.out << fmt::format("matrix  {} ({}, {} mode), reference {}, seeds {}\n", matrix.name, matrix.profile,
                             matrix.total_mode() ? "total" : "finetune", matrix.reference, fmt::join(matrix.seeds, " "));
  context.out << fmt::format("jobs    {}: {} done, {} to run, {} failed, {} blocked\n", work.jobs, work.jobs_done, work.jobs_run,
                             work.jobs_failed, work.jobs_blocked);
  context.out << fmt::format("stages  {}: {} pretraining stages serve {} jobs; {} to run\n", plan.stages.size(), pretraining, users,
                             work.run.size());
  double flops = 0;
  int64_t steps = 0;
  for (const size_t i : work.run) {
    const PlanCell& cell = plan.cells[plan.stages[i].cell];
    flops += cell.costs[plan.stages[i].index].flops;
    steps += cell.spec.stages[plan.stages[i].index].steps;
  }
  context.out << fmt::format("work    {} steps, {}FLOPs\n", steps,
                             with_prefix(flops).find(' ') == std::string::npos ? with_prefix(flops) + " " : with_prefix(flops));
  if (!flags.no_probe) context.out << fmt::format("time    {}\n", time_text(planned.estimate, flags.slots));
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskAnswer& task = plan.tasks[i];
    context.out << fmt::format("data    {}: {} train, {} validation, {} test; {}\n", matrix.tasks[i].label, task.train_size,
                               task.validation_size, task.test_size, task.data_source);
  }
  for (const std::string& note : plan.notes) context.out << "note    " << note << '\n';
  print_cells(planned, context);
}

void print_json(const Planned& planned, const PlanFlags& flags, Context& context) {
  const Plan& plan = planned.plan;
  nlohmann::json cells = nlohmann::json::array();
  for (const PlanCell& cell : plan.cells) {
    nlohmann::json keys = nlohmann::json::array();
    for (size_t seed = 0; seed < plan.matrix.seeds.size(); ++seed) keys.push_back(plan.job_key(cell, seed));
    nlohmann::json steps = nlohmann::json::array();
    for (const StageSpec& stage : cell.spec.stages) steps.push_back(stage.steps);
    cells.push_back({{"name", plan.cell_name(cell)},
                     {"arm_kind", plan.arms[cell.arm].kind},
                     {"steps", steps},
                     {"peak_memory", peak_memory(plan, cell)},
                     {"keys", keys}});
  }
  nlohmann::json answer = {{"matrix", plan.matrix.name},
                           {"jobs", planned.work.jobs},
                           {"jobs_done", planned.work.jobs_done},
                           {"jobs_run", planned.work.jobs_run},
                           {"jobs_failed", planned.work.jobs_failed},
                           {"jobs_blocked", planned.work.jobs_blocked},
                           {"stages", plan.stages.size()},
                           {"stages_run", planned.work.run.size()},
                           {"cells", std::move(cells)},
                           {"notes", plan.notes}};
  if (!flags.no_probe) answer["slot_seconds"] = planned.estimate.total_s;
  context.out << answer.dump(2) << '\n';
}

/// A stage key, the beginning of one, or a job's name.
void print_spec(const Plan& plan, const std::string& wanted, Context& context) {
  std::vector<std::pair<const PlanCell*, size_t>> found;
  std::vector<std::string> names;
  std::set<std::string> keys;
  for (const PlanCell& cell : plan.cells) {
    for (size_t seed = 0; seed < plan.matrix.seeds.size(); ++seed) {
      names.push_back(plan.job_name(cell, seed));
      bool by_key = false;
      for (const size_t stage : cell.stages) {
        const std::string& key = plan.stages[stage + seed].key;
        if (!key.starts_with(wanted)) continue;
        by_key = true;
        keys.insert(key);
      }
      if (by_key || names.back() == wanted) found.emplace_back(&cell, seed);
    }
  }
  if (found.empty()) throw Error("{}", unknown_name("key or job", wanted, names));
  if (keys.size() > 1) throw Error("'{}' begins {} keys; give more of one: {}", wanted, keys.size(), fmt::join(keys, ", "));
  const auto [cell, seed] = found.front();
  context.out << fmt::format("job     {}\n", plan.job_name(*cell, seed));
  for (size_t i = 1; i < found.size(); ++i) context.out << fmt::format("also    {}\n", plan.job_name(*found[i].first, found[i].second));
  for (size_t i = 0; i < cell->stages.size(); ++i)
    context.out << fmt::format("{:<8}{}\n", i + 1 == cell->stages.size() ? "key" : "stage", plan.stages[cell->stages[i] + seed].key);
  context.out << "spec    " << key_text(cell_text(cell->spec, cell->spec.stages.size() - 1), plan.matrix.seeds[seed], plan.matrix.streams)
              << "\n\n";
  for (const Origin& origin : origins_of(plan, *cell))
    context.out << fmt::format("{:<32} = {:<14} {}\n", origin.name, to_text(origin.value), origin.origin);
}

void plan_verb(PlanFlags flags, Context& context) {
  if (flags.slots == 0) flags.slots = std::max<int64_t>(1, std::thread::hardware_concurrency() / flags.threads);
  const MatrixText text = matrix_text(flags.matrix);
  const std::string data = data_root(flags.data).string();
  const auto worker = make_worker_client({worker_program(flags.worker), default_cache()});
  Planned planned{plan_matrix(parse_matrix(text.text, text.file), *worker, data), {}, {}};
  if (!flags.show.empty()) return print_spec(planned.plan, flags.show, context);
  std::unordered_map<std::string, results::StageState> states;
  std::vector<results::AttemptTimes> times;
  if (std::filesystem::exists(flags.database)) {
    const results::Store store(flags.database, results::Store::Mode::kReadOnly);
    states = store.stage_states();
    times = store.attempt_times();
  }
  const std::filesystem::path runs = std::filesystem::absolute(flags.database + ".runs");
  planned.work = work_left(planned.plan, states, {.retry = {}, .has_checkpoint = [&](const std::string& key) {
                                                    return std::filesystem::exists(runs / key / "best.safetensors");
                                                  }});
  if (!flags.no_probe) planned.estimate = estimate_time(planned.plan, planned.work, times, *worker, {data, "cpu", flags.threads});
  flags.json ? print_json(planned, flags, context) : print_summary(planned, flags, context);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("plan", "What a matrix would run, and how long that takes; trains nothing");
  const auto flags = std::make_shared<PlanFlags>();
  verb->add_option("--matrix", flags->matrix, "path of a matrix file, or the name of a shipped one")->required();
  verb->add_option("--db", flags->database, "database whose finished jobs are left out")->capture_default_str()->check(path_given());
  verb->add_option("--data", flags->data, "data folder (default: SPT_DATA, else ./data)");
  verb->add_option("--show", flags->show,
                   "print the spec of one job and where each value comes from; KEY (or its first digits) or a job's name");
  verb->add_flag("--json", flags->json, "print JSON");
  verb->add_flag("--no-probe", flags->no_probe, "leave out the estimate of the time");
  verb->add_option("--threads", flags->threads, "threads of a slot")->capture_default_str()->check(CLI::Range(1, 1024));
  verb->add_option("--slots", flags->slots, "slots the time is divided by (default: cores / threads)")->check(CLI::Range(1, 4096));
  verb->add_option("--worker", flags->worker, "worker program (default: spt-bench-worker beside this program)");
  verb->callback([flags, &context] { plan_verb(*flags, context); });
}

}  // namespace spt::cli
