#include "reports/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "reports/csv.h"

namespace spt::reports {
namespace {

constexpr size_t kCurveDataPoints = 2000;
constexpr const char *kSupervisedStage = "finetune", *kPretrainStage = "pretrain", *kPretrainMetric = "loss";

struct SeedPoint {
  int64_t step;
  uint32_t seed;  // index in its line
  double value;
};

/// Points of one architecture x arm on the two splits of one stage.
struct LineData {
  std::string label;
  size_t colour = 0, dash = 0;
  size_t seeds = 0, planned = 0;
  std::vector<SeedPoint> validation, train;
};

struct StageData {
  std::string stage, metric;
  std::vector<LineData> lines;
};

/// Where the points of a job go.
struct JobPlace {
  size_t task, line;
  uint32_t seed;
};

/// Supervised and pretraining stage of every task, and where each job's points go (a job under two labels goes to both).
struct CurvePlan {
  std::vector<StageData> supervised, pretrain;
  std::unordered_map<std::string, std::vector<JobPlace>> places;
};

template <class Value>
size_t index_among(std::vector<Value>& known, const Value& value) {
  const auto found = std::find(known.begin(), known.end(), value);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  known.push_back(value);
  return known.size() - 1;
}

CurvePlan plan_curves(const std::vector<TaskAnalysis>& tasks) {
  CurvePlan plan;
  for (size_t t = 0; t < tasks.size(); ++t) {
    StageData supervised{kSupervisedStage, tasks[t].metric, {}}, pretrain{kPretrainStage, kPretrainMetric, {}};
    std::vector<std::string> architectures, arms;
    for (const CellAnalysis& cell : tasks[t].cells) {
      if (cell.trivial) continue;
      LineData line;
      line.colour = index_among(architectures, cell.architecture);
      line.dash = index_among(arms, cell.arm);
      for (const CellSeed& seed : cell.seeds) {
        ++line.planned;
        if (outcome_of(seed.row) == SeedOutcome::kIncomplete) continue;
        plan.places[seed.row->job_key].push_back({t, supervised.lines.size(), static_cast<uint32_t>(line.seeds++)});
      }
      line.label = cell.architecture + " " + cell.arm +
                   (line.seeds < line.planned ? fmt::format(" ({} of {} seeds)", line.seeds, line.planned) : "");
      supervised.lines.push_back(line);
      pretrain.lines.push_back(std::move(line));
    }
    plan.supervised.push_back(std::move(supervised));
    plan.pretrain.push_back(std::move(pretrain));
  }
  return plan;
}

/// A line's points of one split, and which of its seeds a curve is.
struct CurveTarget {
  std::vector<SeedPoint>* points;
  uint32_t seed;
};

/// Where the points of one curve go: the lines of every label of its job, if their figure shows this metric.
std::vector<CurveTarget> lines_of(CurvePlan& plan, const results::Curve& curve) {
  std::vector<CurveTarget> lines;
  const auto found = plan.places.find(curve.job_key);
  if (found == plan.places.end() || (curve.split != "validation" && curve.split != "train")) return lines;
  for (const JobPlace& place : found->second) {
    StageData& stage = (curve.stage == kPretrainStage ? plan.pretrain : plan.supervised)[place.task];
    if (curve.stage != stage.stage || curve.metric != stage.metric) continue;
    LineData& line = stage.lines[place.line];
    lines.push_back({curve.split == "validation" ? &line.validation : &line.train, place.seed});
  }
  return lines;
}

void collect_points(CurvePlan& plan, const results::Curves& curves) {
  std::vector<std::vector<CurveTarget>> lines;
  for (const results::Curve& curve : curves.curves) lines.push_back(lines_of(plan, curve));
  for (const results::CurvePoint& point : curves.points)
    for (const CurveTarget& line : lines[point.curve]) line.points->push_back({point.step, line.seed, point.value});
}

std::vector<CurvePoint> points_over_seeds(std::vector<SeedPoint> points, size_t line_seeds) {
  std::stable_sort(points.begin(), points.end(),
                   [](const SeedPoint& a, const SeedPoint& b) { return std::pair(a.step, a.seed) < std::pair(b.step, b.seed); });
  std::vector<bool> seen(line_seeds, false);
  for (const SeedPoint& point : points) seen[point.seed] = true;
  const auto begun = static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
  std::vector<CurvePoint> curve;
  for (size_t i = 0; i < points.size();) {
    CurvePoint point{static_cast<double>(points[i].step), 0, std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()};
    size_t finite = 0, j = i;
    for (; j < points.size() && points[j].step == points[i].step; ++j) {
      if (j + 1 < points.size() && points[j + 1].step == points[j].step && points[j + 1].seed == points[j].seed)
        continue;  // the later one wins
      if (!std::isfinite(points[j].value)) continue;
      ++finite;
      point.mean += points[j].value;
      point.low = std::min(point.low, points[j].value);
      point.high = std::max(point.high, points[j].value);
    }
    point.mean = finite == begun ? point.mean / static_cast<double>(finite) : std::numeric_limits<double>::quiet_NaN();
    curve.push_back(point);
    i = j;
  }
  return curve;
}

CurvePanel panel_of(const StageData& stage, const char* title, std::vector<SeedPoint> LineData::* split) {
  CurvePanel panel{title, {}};
  for (const LineData& line : stage.lines) {
    if (!(line.*split).empty()) panel.lines.push_back({line.label, line.colour, line.dash, points_over_seeds(line.*split, line.seeds)});
  }
  return panel;
}

void add_figure(TaskCurves& curves, const TaskAnalysis& task, const StageData& stage, const std::string& caption,
                const std::string& y_label) {
  CurveFigure figure{fmt::format("curves_{}_{}", curves.task + 1, stage.stage),
                     caption,
                     fmt::format("step of the {} stage (updates)", stage.stage),
                     y_label,
                     {}};
  figure.panels.push_back(panel_of(stage, "validation", &LineData::validation));
  figure.panels.push_back(panel_of(stage, "train subset", &LineData::train));
  if (figure.panels[1].lines.empty()) figure.panels.pop_back();
  if (figure.panels[0].lines.empty()) figure.panels.erase(figure.panels.begin());
  if (figure.panels.empty()) return;
  for (CurvePanel& panel : figure.panels) panel.title = task.task + ", " + panel.title;
  curves.figures.push_back(std::move(figure));
}

void append_figure_data(Table& table, const CurveFigure& figure) {
  for (const CurvePanel& panel : figure.panels) {
    for (const CurveLine& line : panel.lines) {
      for (const CurvePoint& point : thin_curve(line.points, kCurveDataPoints)) {
        const bool gap = std::isnan(point.mean);
        table.add_row({figure.name, panel.title, line.label, csv_number(point.step), csv_number(point.mean),
                       gap ? "" : csv_number(point.low), gap ? "" : csv_number(point.high)});
      }
    }
  }
}

}  // namespace

std::vector<TaskCurves> learning_curves(const std::vector<TaskAnalysis>& tasks, const results::Curves& curves) {
  CurvePlan plan = plan_curves(tasks);
  collect_points(plan, curves);
  std::vector<TaskCurves> result;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskAnalysis& task = tasks[t];
    result.push_back({t, {}});
    add_figure(
        result.back(), task, plan.supervised[t],
        fmt::format(
            "{}: {} during the supervised stage; mean over seeds, band from the smallest to the largest; a line ends where a seed diverged",
            task.task, task.metric),
        task.metric + (task.unit.empty() ? "" : " (" + task.unit + ")"));
    add_figure(result.back(), task, plan.pretrain[t],
               fmt::format("{}: loss of the objective during pretraining; mean and range over seeds", task.task), "loss");
  }
  return result;
}

std::vector<results::CurveKind> drawn_curves(const std::vector<results::ResultRow>& rows) {
  std::vector<results::CurveKind> kinds = {{kPretrainStage, kPretrainMetric}};
  for (const results::ResultRow& row : rows) index_among(kinds, results::CurveKind{kSupervisedStage, row.metric});
  return kinds;
}

Table curves_data(const std::vector<TaskCurves>& curves) {
  Table table{"curves", {{"figure"}, {"panel"}, {"line"}, {"step"}, {"mean"}, {"low"}, {"high"}}, {}, {}};
  for (const TaskCurves& task : curves) {
    for (const CurveFigure& figure : task.figures) append_figure_data(table, figure);
  }
  return table;
}

}  // namespace spt::reports
