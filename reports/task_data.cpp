#include "reports/csv.h"
#include "reports/task_tables.h"

namespace spt::reports {
namespace {

std::vector<Column> data_columns(std::initializer_list<const char*> names) {
  std::vector<Column> columns;
  for (const char* name : names) columns.push_back({name});
  return columns;
}

std::string end_of_interval(const std::optional<Interval>& interval, bool high) {
  return interval ? csv_number(high ? interval->high : interval->low) : "";
}

void append_mean(std::vector<std::string>& cells, const std::optional<MeanEstimate>& estimate) {
  const bool known = estimate && estimate->n > 0;
  cells.insert(cells.end(),
               {known ? csv_number(estimate->mean) : "", known ? csv_number(estimate->sd) : "",
                known ? end_of_interval(estimate->interval, false) : "", known ? end_of_interval(estimate->interval, true) : ""});
}

void append_counts(std::vector<std::string>& cells, const SeedCounts& counts) {
  for (size_t count : {counts.planned, counts.done, counts.diverged, counts.incomplete()}) cells.push_back(std::to_string(count));
}

std::string state_of(const SeedCounts& counts) {
  return counts.complete() ? "complete" : counts.incomplete() > 0 || counts.planned == 0 ? "incomplete" : "diverged";
}

/// "value" is a headline only where the state is complete; `survivors` else.
class StatisticsWriter {
 public:
  explicit StatisticsWriter(Table& table) : table_(table) {}

  void mean(const std::vector<std::string>& labels, const std::string& statistic, const std::optional<SeedSummary>& summary) {
    if (!summary) return;
    std::vector<std::string> cells = start(labels, statistic, summary->counts);
    append_mean(cells, summary->survivors);
    append_mean(cells, summary->imputed);
    cells.push_back("");
    table_.add_row(std::move(cells));
  }

  void ratio(const std::vector<std::string>& labels, const std::string& statistic, const std::optional<SeedRatio>& ratio, bool floor,
             bool reversed) {
    if (!ratio) return;
    std::vector<std::string> cells = start(labels, statistic, ratio->counts);
    append_ratio(cells, ratio->survivors);
    append_ratio(cells, ratio->imputed);
    std::string mark = floor ? "floor" : "";
    if (reversed) mark += (mark.empty() ? "" : "; ") + std::string("order reversed");
    if (ratio->survivors.undetermined()) mark += (mark.empty() ? "" : "; ") + std::string("undetermined");
    cells.push_back(mark);
    table_.add_row(std::move(cells));
  }

 private:
  static std::vector<std::string> start(const std::vector<std::string>& labels, const std::string& statistic, const SeedCounts& counts) {
    std::vector<std::string> cells = labels;
    cells.push_back(statistic);
    cells.push_back(state_of(counts));
    append_counts(cells, counts);
    return cells;
  }
  static void append_ratio(std::vector<std::string>& cells, const std::optional<RatioEstimate>& ratio) {
    const bool known = ratio && ratio->n > 0;
    cells.insert(cells.end(), {known ? csv_number(ratio->ratio) : "", "", known ? end_of_interval(ratio->interval, false) : "",
                               known ? end_of_interval(ratio->interval, true) : ""});
  }
  Table& table_;
};

}  // namespace

Table scores_data(const std::vector<TaskAnalysis>& tasks) {
  Table table{"scores",
              data_columns({"task",           "metric",       "unit",          "higher_is_better", "partial_data",
                            "chance",         "majority",     "architecture",  "trivial",          "arm",
                            "arm_kind",       "protocol",     "state",         "planned",          "done",
                            "diverged",       "incomplete",   "failed",        "failed_share_low", "failed_share_high",
                            "survivors_mean", "survivors_sd", "survivors_low", "survivors_high",   "imputed_mean",
                            "imputed_sd",     "imputed_low",  "imputed_high",  "at_chance_seeds",  "not_converged_seeds",
                            "parameters",     "flops",        "steps",         "examples",         "tokens",
                            "device_s",       "peak_memory",  "match_residual"}),
              {},
              {}};
  for (const TaskAnalysis& task : tasks) {
    for (const CellAnalysis& cell : task.cells) {
      const SeedCounts& counts = cell.score.counts;
      std::vector<std::string> cells = {task.task,
                                        task.metric,
                                        task.unit,
                                        task.higher_is_better ? "1" : "0",
                                        task.partial_data ? "1" : "0",
                                        csv_number(task.chance),
                                        csv_number(task.majority),
                                        cell.architecture,
                                        cell.trivial ? "1" : "0",
                                        cell.arm,
                                        cell.arm_kind,
                                        cell.protocol,
                                        state_of(counts)};
      append_counts(cells, counts);
      const Interval failed = wilson(cell.failed, cell.seeds.size());
      cells.insert(cells.end(), {std::to_string(cell.failed), csv_number(failed.low), csv_number(failed.high)});
      append_mean(cells, cell.score.survivors);
      append_mean(cells, cell.score.imputed);
      cells.insert(cells.end(),
                   {std::to_string(cell.seeds_at_chance), std::to_string(cell.not_converged), csv_number(cell.parameters),
                    csv_number(cell.flops), csv_number(cell.steps), csv_number(cell.examples), csv_number(cell.tokens),
                    csv_number(cell.device_s), csv_number(cell.peak_memory), cell.match_residual ? csv_number(*cell.match_residual) : ""});
      table.add_row(std::move(cells));
    }
  }
  return table;
}

Table seeds_data(const std::vector<TaskAnalysis>& tasks) {
  Table table{"seeds",
              data_columns({"task",       "architecture",    "arm",       "seed",          "status",         "metric",       "test",
                            "validation", "last_validation", "at_chance", "not_converged", "parameters",     "flops",        "steps",
                            "examples",   "tokens",          "device_s",  "peak_memory",   "match_residual", "device_kind",  "device_model",
                            "libtorch",   "cpu_capability",  "threads",   "build_id",      "job_key",        "pretrain_key", "message"}),
              {},
              {}};
  const auto optional_number = [](const std::optional<double>& value) { return value ? csv_number(*value) : ""; };
  for (const TaskAnalysis& task : tasks) {
    for (const CellAnalysis& cell : task.cells) {
      for (const CellSeed& seed : cell.seeds) {
        results::ResultRow row;
        row.status = "missing";
        row.metric = task.metric;
        if (seed.row) row = *seed.row;
        const bool done = outcome_of(seed.row) == SeedOutcome::kDone;
        table.add_row({task.task,
                       cell.architecture,
                       cell.arm,
                       std::to_string(seed.seed),
                       row.status,
                       row.metric,
                       optional_number(row.test),
                       optional_number(row.validation),
                       optional_number(row.last_validation),
                       done ? std::to_string(at_chance(*row.test, task.chance, task.test_size, task.higher_is_better)) : "",
                       done ? std::to_string(row.not_converged) : "",
                       std::to_string(row.parameters),
                       csv_number(row.flops),
                       std::to_string(row.steps),
                       std::to_string(row.examples),
                       std::to_string(row.tokens),
                       csv_number(row.device_s),
                       std::to_string(row.peak_memory),
                       optional_number(row.match_residual),
                       row.device_kind,
                       row.device_model,
                       row.libtorch,
                       row.cpu_capability,
                       std::to_string(row.threads),
                       row.build_id,
                       row.job_key,
                       row.pretrain_key,
                       row.failure_message});
      }
    }
  }
  return table;
}

Table statistics_data(const std::vector<TaskAnalysis>& tasks) {
  Table table{"statistics",
              data_columns({"task",           "reference", "architecture", "arm",         "against",      "statistic",    "state",
                            "planned",        "done",      "diverged",     "incomplete",  "survivors",    "survivors_sd", "survivors_low",
                            "survivors_high", "imputed",   "imputed_sd",   "imputed_low", "imputed_high", "mark"}),
              {},
              {}};
  StatisticsWriter write(table);
  for (const TaskAnalysis& task : tasks) {
    for (const GapAnalysis& gap : task.gaps) write.mean({task.task, task.reference, gap.architecture, gap.arm, ""}, "gap", gap.gap);
    for (const PretrainingAnalysis& row : task.pretraining) {
      const std::vector<std::string> labels = {task.task, task.reference, row.architecture, row.spt, row.matched};
      write.mean(labels, "I", row.primary);
      write.ratio(labels, "gap_closed", row.gap_closed, row.matched_floor, row.matched_reversed);
      write.ratio(labels, "by_compute", row.by_compute, row.scratch_floor, row.scratch_reversed);
      write.ratio(labels, "by_pretraining", row.by_pretraining, row.scratch_floor, row.scratch_reversed);
    }
    for (const EffectAnalysis& row : task.effects) {
      write.mean({task.task, "", row.architecture, row.matched, row.scratch}, "effect_compute", row.compute);
      write.mean({task.task, "", row.architecture, row.spt, row.matched}, "effect_pretraining", row.pretraining);
      write.mean({task.task, "", row.architecture, row.spt, row.scratch}, "effect_total", row.total);
    }
  }
  return table;
}

}  // namespace spt::reports
