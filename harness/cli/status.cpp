#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "results/store.h"

namespace spt::cli {
namespace {

struct StatusFlags {
  std::string db = "spt-bench.db";
  bool failures = false;
};

void print_counts(std::ostream& out, const std::string& name, const results::StatusCounts& counts) {
  out << fmt::format("{}: {} jobs, {} done, {} running, {} to run", name, counts.jobs, counts.done, counts.running, counts.planned);
  std::vector<std::pair<std::string, int64_t>> failed(counts.failed.begin(), counts.failed.end());
  std::sort(failed.begin(), failed.end());
  for (const auto& [failure, count] : failed) out << fmt::format(", {} {}", count, failure);
  out << '\n';
}

/// Why jobs failed, each reason once with the jobs that have it.
void print_failures(std::ostream& out, const results::Store& store, const results::MatrixRow& matrix) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> reasons;
  for (const results::ResultRow& row : store.results(matrix.id))
    if (results::failure_from_name(row.status)) reasons[{row.status, row.failure_message}].push_back(row.name);
  for (const auto& [reason, jobs] : reasons) {
    out << fmt::format("  {}: {}\n", reason.first, reason.second);
    for (const std::string& job : jobs) out << fmt::format("    {}\n", job);
  }
}

void status(const StatusFlags& flags, Context& context) {
  if (!std::filesystem::exists(flags.db)) throw Error("--db '{}': there is no such database; `spt-bench run` makes one", flags.db);
  const results::Store store(flags.db, results::Store::Mode::kReadOnly);
  for (const results::MatrixRow& matrix : store.matrices()) {
    const results::StatusCounts counts = store.status(matrix.id);
    print_counts(context.out, matrix.name, counts);
    if (flags.failures) print_failures(context.out, store, matrix);
    if (counts.done < counts.jobs) context.exit_code = 1;
  }
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("status", "Jobs done, running and failed by class, for each matrix; exit code 1 while any is not done");
  const auto flags = std::make_shared<StatusFlags>();
  verb->add_option("--db", flags->db, "database file")->capture_default_str()->check(path_given());
  verb->add_flag("--failures", flags->failures, "name each failed job and why");
  verb->callback([flags, &context] { status(*flags, context); });
}

}  // namespace spt::cli
