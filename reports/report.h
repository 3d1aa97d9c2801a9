#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/table.h"
#include "results/record.h"

namespace spt::reports {

struct ReportInput {
  results::MatrixRow matrix;
  std::vector<results::ResultRow> rows;
  results::Curves curves;
};

struct ReportOptions {
  bool allow_mixed = false;         ///< tables over several device kinds or LibTorch minor versions, marked, instead of an Error
  bool figures = true;              ///< learning curves; the terminal's report can do without
  std::string gnuplot = "gnuplot";  ///< program that draws them
};

struct TextFile {
  std::string name, text;
};

struct Report {
  Page page;
  std::vector<TextFile> data;         ///< *.csv: every number unrounded
  std::vector<std::string> warnings;  ///< for the command to print: what the report could not do
};

/// Everything that the rows of one matrix say, for every output. Pure but for the run of gnuplot.
/// Errors: Error if a task's rows mix device kinds or LibTorch minor versions and options.allow_mixed is off.
Report build_report(const ReportInput& input, const ReportOptions& options);

/// The report for a terminal.
std::string terminal_text(const Report& report);

/// Writes report.md, report.html (stands alone), *.csv and *.svg into `folder`, which is made; answers their names. Each file is replaced
/// as a whole. Errors: Error naming a file that cannot be written.
std::vector<std::string> write_report(const Report& report, const std::filesystem::path& folder);

}  // namespace spt::reports
