#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace spt::results {
class Store;
struct MatrixRow;
}  // namespace spt::results
namespace spt::reports {
struct ReportOptions;
}

namespace spt::cli {

/// What a verb has beside its flags; tests give streams of their own.
struct Context {
  std::ostream& out;
  std::ostream& err;
  int exit_code = 0;  ///< set by the verb: 0 all is done, 1 something failed or is incomplete, 2 usage or Error
};

// One subcommand a file, harness/cli/<verb>.cpp: declares its flags and a callback that does the work.
void add_checkpoint(CLI::App& app, Context& context);
void add_data(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);

/// Parses and runs one command line (without the program's name). Answers the exit code; every Error ends here, as a message on `err`.
int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

/// A matrix file's text, and what to call it in messages.
struct MatrixText {
  std::string text;
  std::string file;
};
/// `name` is the path of a file or the name of a shipped matrix. Errors: Error with the shipped names.
MatrixText matrix_text(const std::string& name);

/// The shipped matrices: (name, text). Embedded from matrices/*.toml at build time.
const std::vector<std::pair<std::string_view, std::string_view>>& matrix_files();

/// Flag --data, else the environment's SPT_DATA, else ./data.
std::filesystem::path data_root(const std::string& flag);

/// The report of one matrix: on the terminal, and as files where `folder` is not empty.
void print_report(const results::Store& store, const results::MatrixRow& matrix, const reports::ReportOptions& options,
                  const std::filesystem::path& folder, Context& context);

}  // namespace spt::cli
