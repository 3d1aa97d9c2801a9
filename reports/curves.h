#pragma once

#include <string>
#include <vector>

#include "reports/analysis.h"
#include "reports/plot.h"
#include "results/record.h"

namespace spt::reports {

/// Of one task of the analysis.
struct TaskCurves {
  size_t task = 0;
  std::vector<CurveFigure> figures;
};

/// One figure a task: the primary metric of the supervised stage on validation and on the train subset; and one of the pretraining loss
/// where there is any. A line is one architecture x arm: mean over its seeds that are done or diverged, band from their smallest to their
/// largest. From the step where one of them has no finite value the line has a gap: what is left would be survivors. Time: O(n log n) in
/// points.
std::vector<TaskCurves> learning_curves(const std::vector<TaskAnalysis>& tasks, const results::Curves& curves);

/// The kinds of curve that those figures of `rows` draw: all that learning_curves() looks at.
std::vector<results::CurveKind> drawn_curves(const std::vector<results::ResultRow>& rows);

/// The points of those figures as they are drawn, for CSV.
Table curves_data(const std::vector<TaskCurves>& curves);

}  // namespace spt::reports
