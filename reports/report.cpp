#include "reports/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "reports/analysis.h"
#include "reports/csv.h"
#include "reports/curves.h"
#include "reports/html.h"
#include "reports/markdown.h"
#include "reports/plot.h"
#include "reports/provenance.h"
#include "reports/task_tables.h"
#include "reports/terminal.h"

namespace spt::reports {
namespace {

constexpr double kLargestFlopsMismatch = 0.02;
constexpr size_t kFewSeeds = 5;

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

/// "1-5, 8" for {1, 2, 3, 4, 5, 8}.
std::string seeds_text_of(std::vector<uint64_t> seeds) {
  std::sort(seeds.begin(), seeds.end());
  std::vector<std::string> runs;
  for (size_t i = 0, j; i < seeds.size(); i = j) {
    for (j = i + 1; j < seeds.size() && seeds[j] == seeds[j - 1] + 1;) ++j;
    runs.push_back(j - i == 1 ? std::to_string(seeds[i]) : fmt::format("{}-{}", seeds[i], seeds[j - 1]));
  }
  return list_text(runs);
}

/// Jobs by status; one that stands under two labels is one job.
std::map<std::string, size_t> count_statuses(const std::vector<TaskAnalysis>& tasks) {
  std::map<std::string, size_t> counts;
  std::set<std::string_view> seen;
  for (const TaskAnalysis& task : tasks) {
    for (const CellAnalysis& cell : task.cells) {
      for (const CellSeed& seed : cell.seeds) {
        if (!seed.row) ++counts["missing"];
        else if (seen.insert(seed.row->job_key).second)
          ++counts[seed.row->status == "done" && !seed.row->test ? "done without a test value" : seed.row->status];
      }
    }
  }
  return counts;
}

void add_facts(Page& page, const ReportInput& input, const std::vector<TaskAnalysis>& tasks) {
  const results::MatrixRow& matrix = input.matrix;
  const auto counts = count_statuses(tasks);
  size_t jobs = 0;
  std::string failed;
  for (const auto& [status, count] : counts) {
    jobs += count;
    if (status != "done") failed += fmt::format(", {} {}", count, status);
  }
  const size_t done = counts.contains("done") ? counts.at("done") : 0;
  page.facts.push_back({"profile", matrix.profile + ", " + matrix.mode + " mode"});
  page.facts.push_back({"reference", matrix.reference});
  page.facts.push_back({"seeds", seeds_text_of(matrix.seeds)});
  page.facts.push_back({"jobs", fmt::format("{} of {} done{}", done, jobs, failed)});
  const std::vector<std::string> kinds = device_kinds(input.rows);
  std::set<std::string> versions;
  for (const results::ResultRow& row : input.rows) {
    if (row.status == "done") versions.insert(row.libtorch);
  }
  if (kinds.empty()) return;
  const bool cuda = std::find(kinds.begin(), kinds.end(), "cuda") != kinds.end();
  page.facts.push_back({"device", list_text(kinds) + (cuda ? "" : " (CUDA was not executed)") + ", LibTorch " +
                                      list_text({versions.begin(), versions.end()})});
}

void add_seed_notices(Page& page, const std::vector<TaskAnalysis>& tasks) {
  std::vector<std::string> one, few;
  for (const TaskAnalysis& task : tasks) {
    size_t planned = 0;
    for (const CellAnalysis& cell : task.cells) {
      if (!cell.trivial) planned = std::max(planned, cell.score.counts.planned);
    }
    if (planned == 1) one.push_back(task.task);
    if (planned > 1 && planned < kFewSeeds) few.push_back(fmt::format("{} (n = {})", task.task, planned));
  }
  if (!one.empty())
    page.notices.push_back(
        fmt::format("ONE SEED: {}. There is no interval, and no difference here can be told from noise.", list_text(one)));
  if (!few.empty())
    page.notices.push_back(fmt::format("Fewer than {} seeds: {}. Intervals are wide and depend on normality; a claim wants 6 or more.",
                                       kFewSeeds, list_text(few)));
}

void add_notices(Page& page, const ReportInput& input, const std::vector<TaskAnalysis>& tasks, const std::vector<std::string>& mixed) {
  if (input.matrix.analysis_changed) page.notices.push_back("The analysis settings were CHANGED AFTER RESULTS WERE SEEN.");
  for (const std::string& problem : mixed) page.notices.push_back("MIXED: " + problem + "; differences between arms may come from that.");
  add_seed_notices(page, tasks);
  std::vector<std::string> partial, without_reference;
  std::set<std::string> external;
  for (const TaskAnalysis& task : tasks) {
    if (task.partial_data) partial.push_back(task.task);
    if (task.reference.empty()) without_reference.push_back(task.task);
    for (const CellAnalysis& cell : task.cells) {
      if (cell.architecture.ends_with(results::kExternalLabel)) external.insert(cell.architecture);
      if (cell.match_residual && *cell.match_residual > kLargestFlopsMismatch && results::matched_basis(cell.arm) == "flops") {
        page.notices.push_back(fmt::format("{} {} {}: the FLOPs of the arms differ by {:.1f} %, more than the {:.0f} % allowed.", task.task,
                                           cell.architecture, cell.arm, 100 * *cell.match_residual, 100 * kLargestFlopsMismatch));
      }
    }
  }
  if (!external.empty())
    page.notices.push_back(fmt::format(
        "GIVEN WEIGHTS: {}. Conditional on one pretraining run: seeds differ in what came after it, and no interval covers another "
        "run of it.",
        list_text({external.begin(), external.end()})));
  if (!partial.empty())
    page.notices.push_back(
        fmt::format("PARTIAL DATA: {}. Not the official data set; do not compare with published numbers.", list_text(partial)));
  if (!without_reference.empty())
    page.notices.push_back(
        fmt::format("No job of the reference '{}' on: {}. There are no gaps.", input.matrix.reference, list_text(without_reference)));
}

Section section_of(const TaskAnalysis& task, const std::vector<std::string>& common) {
  Section section{task.task, {describe_task(task)}, {score_table(task, common)}, {}};
  if (!task.pretraining.empty()) section.tables.push_back(pretraining_table(task, common));
  if (!task.gaps.empty()) section.tables.push_back(gap_table(task, common));
  if (!task.effects.empty()) section.tables.push_back(effect_table(task, common));
  section.tables.push_back(cost_table(task));
  return section;
}

void add_figures(Report& report, const std::vector<TaskCurves>& curves, const ReportOptions& options) {
  std::vector<CurveFigure> all;
  std::vector<size_t> owners;
  for (const TaskCurves& task : curves) {
    for (const CurveFigure& figure : task.figures) {
      all.push_back(figure);
      owners.push_back(task.task);
    }
  }
  std::vector<Figure> figures = draw_curves(all, options.gnuplot);
  if (!figures.empty() && !figures[0].missing.empty()) report.warnings.push_back(figures[0].missing);
  for (size_t i = 0; i < figures.size(); ++i) report.page.sections[owners[i]].figures.push_back(std::move(figures[i]));
}

Section notes_section(const ReportInput& input) {
  Section notes{"How to read this", {}, {}, {}};
  const bool total = input.matrix.mode == "total";
  notes.paragraphs = {
      total ? "Every arm is a run of its own: scratch@T trains T steps from a fresh start; spt@P+F divides the same T = P + F between "
              "pretraining on the task's own train inputs "
              "and supervised training. So the two are matched by design, and there is no arm at F steps to split the gap with."
            : "Every arm is a run of its own: scratch@F trains F steps from a fresh start, spt@P+F pretrains on the task's own train "
              "inputs for P steps and then trains F steps, "
              "scratch@(P+F) spends the compute of both on supervised training from a fresh start. Compare pretraining with scratch@(P+F), "
              "not with scratch@F alone.",
      "All intervals are 95 % and unadjusted for multiplicity. Pairs are made by seed, by design. Selection: best validation metric; the "
      "test split is read once, on the selected checkpoint.",
      "Files: scores.csv and statistics.csv hold these tables unrounded, seeds.csv one row a job with its status and numerics stamp, "
      "curves.csv the points of the figures."};
  for (const std::string& difference : stamp_differences(input.rows)) notes.paragraphs.push_back(difference);
  return notes;
}

}  // namespace

Report build_report(const ReportInput& input, const ReportOptions& options) {
  const std::vector<std::string> mixed = mixed_stamps(input.rows);
  if (!mixed.empty() && !options.allow_mixed) {
    throw Error("report '{}': {}; such numbers do not belong in one table (--allow-mixed prints them, marked)", input.matrix.name,
                mixed.front());
  }
  const std::vector<TaskAnalysis> tasks = analyse(input.matrix, input.rows);
  Report report;
  report.page.title = "spt-bench report: " + input.matrix.name;
  add_facts(report.page, input, tasks);
  add_notices(report.page, input, tasks, mixed);
  const std::vector<std::string> common = {fmt::format(
      "Profile {}, {} mode. Intervals: 95 %, unadjusted. Untuned: one recipe for all arms.", input.matrix.profile, input.matrix.mode)};
  for (const TaskAnalysis& task : tasks) report.page.sections.push_back(section_of(task, common));
  const std::vector<TaskCurves> curves = learning_curves(tasks, input.curves);
  if (options.figures) add_figures(report, curves, options);
  report.page.sections.push_back(notes_section(input));
  report.data = {{"scores.csv", render_csv(scores_data(tasks))},
                 {"statistics.csv", render_csv(statistics_data(tasks))},
                 {"seeds.csv", render_csv(seeds_data(tasks))},
                 {"curves.csv", render_csv(curves_data(curves))}};
  return report;
}

std::string terminal_text(const Report& report) { return render_terminal(report.page); }

std::vector<std::string> write_report(const Report& report, const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw Error("cannot make the folder {}: {}", folder.string(), problem.message());
  std::vector<TextFile> files = {{"report.md", render_markdown(report.page)}, {"report.html", render_html(report.page)}};
  files.insert(files.end(), report.data.begin(), report.data.end());
  for (const Section& section : report.page.sections) {
    for (const Figure& figure : section.figures) {
      if (!figure.svg.empty()) files.push_back({figure.name + ".svg", standalone_svg(figure)});
    }
  }
  std::vector<std::string> names;
  for (const TextFile& file : files) {
    write_file_atomically(folder / file.name, file.text);
    names.push_back(file.name);
  }
  return names;
}

}  // namespace spt::reports
