#pragma once

#include <string>
#include <vector>

#include "reports/analysis.h"
#include "reports/table.h"

namespace spt::reports {

// One task's analysis as tables for people. `common` are footnotes that every table repeats: profile, mode, coverage, tuning.

Table score_table(const TaskAnalysis& task, const std::vector<std::string>& common);
Table cost_table(const TaskAnalysis& task);
Table gap_table(const TaskAnalysis& task, const std::vector<std::string>& common);
Table pretraining_table(const TaskAnalysis& task, const std::vector<std::string>& common);
Table effect_table(const TaskAnalysis& task, const std::vector<std::string>& common);

/// What is measured, on how many examples and labels, what chance scores.
std::string describe_task(const TaskAnalysis& task);

// The same numbers unrounded, one row a statistic, all tasks in one table each, for CSV. Failed seeds are counted, never dropped unmarked.

Table scores_data(const std::vector<TaskAnalysis>& tasks);
Table seeds_data(const std::vector<TaskAnalysis>& tasks);       ///< one row a job
Table statistics_data(const std::vector<TaskAnalysis>& tasks);  ///< gaps, I, gap closed, its two parts, effects

}  // namespace spt::reports
