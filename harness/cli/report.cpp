#include "reports/report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "reports/curves.h"
#include "results/store.h"

namespace spt::cli {
namespace {

struct ReportFlags {
  std::string db = "spt-bench.db";
  std::string matrix;
  std::string out;
  bool allow_mixed = false;
};

std::vector<results::MatrixRow> chosen_matrices(const results::Store& store, const ReportFlags& flags) {
  std::vector<results::MatrixRow> all = store.matrices();
  if (all.empty()) throw Error("--db '{}' holds no matrix yet; `spt-bench run --matrix M --db {}` fills it", flags.db, flags.db);
  if (flags.matrix.empty()) return all;
  std::vector<std::string> known;
  for (const results::MatrixRow& matrix : all) known.push_back(matrix.name);
  std::erase_if(all, [&](const results::MatrixRow& matrix) { return matrix.name != flags.matrix; });
  if (all.empty()) throw Error("--db '{}': {}", flags.db, unknown_name("matrix", flags.matrix, known));
  return all;
}

void report(const ReportFlags& flags, Context& context) {
  if (!std::filesystem::exists(flags.db)) throw Error("--db '{}': there is no such database; `spt-bench run` makes one", flags.db);
  const results::Store store(flags.db, results::Store::Mode::kReadOnly);
  const std::vector<results::MatrixRow> matrices = chosen_matrices(store, flags);
  for (const results::MatrixRow& matrix : matrices) {
    const std::filesystem::path folder =
        matrices.size() == 1 ? std::filesystem::path(flags.out) : std::filesystem::path(flags.out) / matrix.name;
    print_report(store, matrix, {.allow_mixed = flags.allow_mixed, .figures = !flags.out.empty()},
                 flags.out.empty() ? std::filesystem::path() : folder, context);
  }
}

}  // namespace

void print_report(const results::Store& store, const results::MatrixRow& matrix, const reports::ReportOptions& options,
                  const std::filesystem::path& folder, Context& context) {
  reports::ReportInput input{.matrix = matrix, .rows = store.results(matrix.id), .curves = {}};
  if (options.figures) input.curves = store.curves(matrix.id, reports::drawn_curves(input.rows));
  const reports::Report built = reports::build_report(input, options);
  context.out << reports::terminal_text(built);
  for (const std::string& warning : built.warnings) context.err << "spt-bench: " << warning << '\n';
  if (folder.empty()) return;
  const std::vector<std::string> files = reports::write_report(built, folder);
  context.out << fmt::format("\nwritten to {}: {}\n", folder.string(), fmt::join(files, ", "));
}

void add_report(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("report", "Tables and gap analyses of a database, on the terminal and as files");
  const auto flags = std::make_shared<ReportFlags>();
  verb->add_option("--db", flags->db, "database file")->capture_default_str()->check(path_given());
  verb->add_option("--matrix", flags->matrix, "name of one matrix in it (default: all)");
  verb->add_option("--out", flags->out, "folder for report.html, report.md, *.csv and *.svg (default: terminal only)")->check(path_given());
  verb->add_flag("--allow-mixed", flags->allow_mixed, "tables over several device kinds or LibTorch minor versions");
  verb->callback([flags, &context] { report(*flags, context); });
}

}  // namespace spt::cli
