#include "reports/task_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/text.h"

namespace spt::reports {
namespace {

/// How numbers of one task are written: digits after the point, enough for four significant ones of the largest score.
struct NumberFormat {
  int decimals = 4;
  bool sign = false;
};

NumberFormat format_of_task(const TaskAnalysis& task) {
  double largest = 0;
  for (const CellAnalysis& cell : task.cells) {
    if (cell.score.survivors.n > 0) largest = std::max(largest, std::abs(cell.score.survivors.mean));
  }
  const int whole = largest > 1 ? static_cast<int>(std::floor(std::log10(largest))) + 1 : 0;
  return {std::clamp(4 - whole, 0, 4), false};
}

std::string number_text(double value, NumberFormat format) {
  if (std::isnan(value)) return "-";
  std::string text = fmt::format("{:.{}f}", value, format.decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);  // no -0.0000
  return format.sign && !text.starts_with('-') ? "+" + text : text;
}

std::string interval_text(double value, const std::optional<Interval>& interval, NumberFormat format) {
  const std::string text = number_text(value, format);
  return interval ? fmt::format("{} [{}, {}]", text, number_text(interval->low, format), number_text(interval->high, format)) : text;
}

std::string mean_text(const MeanEstimate& estimate, NumberFormat format) {
  return estimate.n == 0 ? "none" : interval_text(estimate.mean, estimate.interval, format);
}

std::string ratio_text(const RatioEstimate& ratio) {
  if (ratio.n == 0) return "none";
  return ratio.undetermined() ? "undetermined" : interval_text(ratio.ratio, ratio.interval, {2, false});
}

/// The headline of a cell whose seeds did not all end well; "" if they did.
std::string failure_text(const SeedCounts& counts) {
  if (counts.incomplete() > 0 || counts.planned == 0)
    return fmt::format("incomplete ({}/{})", counts.done + counts.diverged, counts.planned);
  return counts.diverged > 0 ? fmt::format("- ({}/{})", counts.diverged, counts.planned) : "";
}

template <class Summary, class Text>
std::string seeds_text(const Summary& summary, const Text& text) {
  const std::string failure = failure_text(summary.counts);
  if (failure.empty()) return text(summary.survivors);
  if (summary.counts.incomplete() > 0 || summary.counts.planned == 0) return failure;
  return failure + "\nimputed " + (summary.imputed ? text(*summary.imputed) : "unknown") + "\nsurvivors " + text(summary.survivors);
}

std::string summary_text(const SeedSummary& summary, NumberFormat format) {
  return seeds_text(summary, [&](const MeanEstimate& estimate) { return mean_text(estimate, format); });
}

std::string optional_summary_text(const std::optional<SeedSummary>& summary, NumberFormat format) {
  return summary ? summary_text(*summary, format) : "no arm";
}

std::string optional_ratio_text(const std::optional<SeedRatio>& ratio, bool floor, bool reversed) {
  if (!ratio) return "no arm";
  if (ratio->counts.complete() && floor) return "floor";
  if (ratio->counts.complete() && reversed) return "order reversed";
  return seeds_text(*ratio, ratio_text);
}

std::string failed_text(const CellAnalysis& cell) {
  if (cell.failed == 0) return fmt::format("0/{}", cell.seeds.size());
  const Interval share = wilson(cell.failed, cell.seeds.size());
  return fmt::format("{}/{} [{:.2f}, {:.2f}]", cell.failed, cell.seeds.size(), share.low, share.high);
}

std::string join_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

std::string notes_of_cell(const CellAnalysis& cell) {
  std::vector<std::string> notes;
  std::map<std::string, size_t> statuses;
  for (const CellSeed& seed : cell.seeds) {
    if (outcome_of(seed.row) != SeedOutcome::kDone)
      ++statuses[!seed.row ? "missing" : seed.row->status == "done" ? "done without a test value" : seed.row->status];
  }
  for (const auto& [status, count] : statuses) notes.push_back(fmt::format("{} {}", count, status));
  if (cell.seeds_at_chance > 0) notes.push_back(fmt::format("at chance {}/{}", cell.seeds_at_chance, cell.score.counts.done));
  if (cell.not_converged > 0) notes.push_back(fmt::format("not converged {}/{}", cell.not_converged, cell.score.counts.done));
  return join_notes(notes);
}

void append_notes(Table& table, const std::vector<std::string>& common) {
  table.footnotes.insert(table.footnotes.end(), common.begin(), common.end());
}

std::string title_of(const TaskAnalysis& task, const std::string& what) {
  return task.task + (task.partial_data ? " (PARTIAL DATA)" : "") + ": " + what;
}

std::string metric_text(const TaskAnalysis& task) { return task.metric + (task.unit.empty() ? "" : " (" + task.unit + ")"); }

}  // namespace

std::string describe_task(const TaskAnalysis& task) {
  const NumberFormat format = format_of_task(task);
  std::string text = fmt::format("Primary metric: {}, {} is better, on the test split, read once.", metric_text(task),
                                 task.higher_is_better ? "higher" : "lower");
  if (task.test_size == 0) return text + " No job has opened the data yet.";
  text += fmt::format(" Labels used: {} train + {} validation; {} test examples.", task.train_size, task.validation_size, task.test_size);
  text += fmt::format(" Chance c = {}.", number_text(task.chance, format));
  if (task.partial_data) text += " PARTIAL DATA: not the official data set; do not compare with published numbers.";
  return text;
}

Table score_table(const TaskAnalysis& task, const std::vector<std::string>& common) {
  Table table{title_of(task, fmt::format("test {}, mean [95 % interval] over seeds", task.metric)),
              {{"architecture"},
               {"arm"},
               {metric_text(task), Align::kRight},
               {"n", Align::kRight},
               {"failed", Align::kRight},
               {"parameters", Align::kRight},
               {"FLOPs", Align::kRight},
               {"device s", Align::kRight},
               {"notes"}},
              {},
              {}};
  const NumberFormat format = format_of_task(task);
  bool chance = false, failed = false, incomplete = false, diverged = false, converged = true, trivial = false;
  for (const CellAnalysis& cell : task.cells) {
    table.add_row({cell.architecture + (cell.trivial ? " (baseline)" : ""), cell.arm, summary_text(cell.score, format),
                   std::to_string(cell.score.counts.done), failed_text(cell), short_count(cell.parameters), short_count(cell.flops),
                   number_text(cell.device_s, {1, false}), notes_of_cell(cell)});
    chance |= cell.seeds_at_chance > 0;
    diverged |= cell.score.counts.diverged > 0;
    failed |= cell.failed > 0;
    incomplete |= cell.score.counts.incomplete() > 0;
    converged &= cell.not_converged == 0;
    trivial |= cell.trivial;
  }
  if (task.test_size > 0) {  // needs no run: what train's labels alone predict
    trivial = true;
    table.add_row({task.metric == "accuracy" ? "majority (baseline)" : "mean (baseline)", "no training", number_text(task.majority, format),
                   "-", "-", "0", "0", "0.0", ""});
  }
  table.footnotes.push_back(
      "n: distinct seeds that are done (each with its own pretraining run); FLOPs and device seconds of training, all stages, mean over "
      "them.");
  if (diverged)
    table.footnotes.push_back("\"- (k/n)\": k of n seeds diverged; below it the mean with those at chance, then over the survivors alone.");
  if (failed) table.footnotes.push_back("failed: seeds that ended without a result, with Wilson's 95 % interval of their share.");
  if (incomplete)
    table.footnotes.push_back("\"incomplete (k/n)\": k of n seeds have an outcome; the others are still to be run, or to be run again.");
  if (chance) table.footnotes.push_back("at chance: seeds within 3 binomial standard errors of c, or below; they stay in the mean.");
  if (!converged) table.footnotes.push_back("not converged: seeds whose selected step is in the last tenth of the evaluations.");
  if (trivial) table.footnotes.push_back("baseline: a trivial model, on the same labels; in no gap.");
  append_notes(table, common);
  return table;
}

Table cost_table(const TaskAnalysis& task) {
  Table table{title_of(task, "what each arm used, mean over seeds"),
              {{"architecture"},
               {"arm"},
               {"steps", Align::kRight},
               {"examples", Align::kRight},
               {"tokens", Align::kRight},
               {"FLOPs", Align::kRight},
               {"device s", Align::kRight},
               {"peak memory", Align::kRight},
               {"mismatch", Align::kRight}},
              {},
              {}};
  bool matched = false;
  for (const CellAnalysis& cell : task.cells) {
    matched |= cell.match_residual.has_value();
    table.add_row({cell.architecture, cell.arm, short_count(cell.steps), short_count(cell.examples), short_count(cell.tokens),
                   short_count(cell.flops), number_text(cell.device_s, {1, false}),
                   std::isnan(cell.peak_memory) || cell.peak_memory == 0 ? "-" : short_count(cell.peak_memory) + "B",
                   cell.match_residual ? fmt::format("{:.2f} %", 100 * *cell.match_residual) : ""});
  }
  table.footnotes.push_back(
      "All stages of a job together. Evaluation, tuning and preparation of data are not in it. Tokens: real positions, pads not counted.");
  if (matched)
    table.footnotes.push_back(
        "mismatch: |C(spt)/C(scratch) - 1| on the basis of the match, from what was executed; the largest of the seeds.");
  return table;
}

Table gap_table(const TaskAnalysis& task, const std::vector<std::string>& common) {
  NumberFormat format = format_of_task(task);
  format.sign = true;
  Table table{title_of(task, fmt::format("gap to {}, paired by seed", task.reference)),
              {{"architecture"}, {"arm"}, {"gap", Align::kRight}, {"n", Align::kRight}, {"seed correlation", Align::kRight}, {"notes"}},
              {},
              {}};
  for (const GapAnalysis& gap : task.gaps) {
    table.add_row({gap.architecture, gap.arm, summary_text(gap.gap, format), std::to_string(gap.gap.counts.done),
                   gap.correlation ? fmt::format("{:.2f}", *gap.correlation) : "-", gap.gap.survivors.mean < 0 ? "order reversed" : ""});
  }
  table.footnotes.push_back(
      fmt::format("gap = {0}({1}, s) - {0}({2}, s), {3}: positive where {1} leads; mean over seeds s [95 % Student-t interval].", "u",
                  task.reference, "A", task.higher_is_better ? "u = " + task.metric : "u = -" + task.metric));
  table.footnotes.push_back(
      "seed correlation: of the two scores over seeds; pairing narrows the interval only where it is clearly positive.");
  append_notes(table, common);
  return table;
}

Table pretraining_table(const TaskAnalysis& task, const std::vector<std::string>& common) {
  NumberFormat format = format_of_task(task);
  format.sign = true;
  Table table{title_of(task, fmt::format("does pretraining shrink the lead of {}?", task.reference)),
              {{"architecture"},
               {"pretraining"},
               {"against"},
               {"I", Align::kRight},
               {"gap closed", Align::kRight},
               {"by compute", Align::kRight},
               {"by pretraining", Align::kRight},
               {"n", Align::kRight},
               {"notes"}},
              {},
              {}};
  for (const PretrainingAnalysis& row : task.pretraining) {
    std::vector<std::string> notes;
    if (row.matched_reversed) notes.push_back("order reversed at " + row.matched);
    if (row.scratch_reversed) notes.push_back("order reversed at " + row.scratch);
    table.add_row({row.architecture, row.spt, row.matched.empty() ? "-" : row.matched, optional_summary_text(row.primary, format),
                   optional_ratio_text(row.gap_closed, row.matched_floor, row.matched_reversed),
                   optional_ratio_text(row.by_compute, row.scratch_floor, row.scratch_reversed),
                   optional_ratio_text(row.by_pretraining, row.scratch_floor, row.scratch_reversed),
                   std::to_string(row.primary ? row.primary->counts.done : 0), join_notes(notes)});
  }
  table.footnotes.push_back(
      "I = mean over seeds of gap(against) - gap(pretraining): by how much pretraining shrinks the lead beyond what the same compute does; "
      "the primary statistic.");
  table.footnotes.push_back(
      "gap closed = 1 - gap(pretraining)/gap(against). Of the gap at scratch@F: by compute, what more steps alone close; by pretraining, "
      "what pretraining closes beyond. "
      "Fieller's 95 % intervals.");
  table.footnotes.push_back(
      "undetermined: the interval of the denominator contains 0; floor: an arm in the ratio is at chance; order reversed: the "
      "denominator's mean gap is negative.");
  append_notes(table, common);
  return table;
}

Table effect_table(const TaskAnalysis& task, const std::vector<std::string>& common) {
  NumberFormat format = format_of_task(task);
  format.sign = true;
  Table table{title_of(task, "effect of pretraining and of compute within each architecture"),
              {{"architecture"},
               {"pretraining"},
               {"compute alone", Align::kRight},
               {"pretraining beyond compute", Align::kRight},
               {"both", Align::kRight},
               {"n", Align::kRight}},
              {},
              {}};
  for (const EffectAnalysis& row : task.effects) {
    const size_t n = row.pretraining ? row.pretraining->counts.done : row.total ? row.total->counts.done : 0;
    table.add_row({row.architecture, row.spt + (row.matched.empty() ? "" : " v " + row.matched), optional_summary_text(row.compute, format),
                   optional_summary_text(row.pretraining, format), optional_summary_text(row.total, format), std::to_string(n)});
  }
  table.footnotes.push_back(fmt::format("Differences of u = {}{}, paired by seed, mean [95 % Student-t interval]; positive is better.",
                                        task.higher_is_better ? "" : "-", task.metric));
  table.footnotes.push_back(
      "compute alone: scratch@(P+F) - scratch@F; pretraining beyond compute: spt@P+F - scratch@(P+F); both: spt@P+F - scratch@F.");
  append_notes(table, common);
  return table;
}

}  // namespace spt::reports
