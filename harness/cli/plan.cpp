#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/error.h"
#include "harness/cli/cli.h"

namespace spt::cli {

void add_plan(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("plan", "What a matrix would run; trains nothing");
  const auto matrix = std::make_shared<std::string>();
  verb->add_option("--matrix", *matrix, "path of a matrix file, or the name of a shipped one")->required();
  verb->callback([matrix, &context] { matrix_text(*matrix); });
}

}  // namespace spt::cli
