#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/cli/cli.h"

namespace spt::cli {
namespace {

struct ListFlags {
  std::string kind, name;
  bool show = false;
};

void list_matrices(const ListFlags& flags, Context& context) {
  if (flags.name.empty()) {
    context.out << "matrices\n";
    for (const auto& [name, text] : matrix_files()) context.out << "  " << name << "\n";
  } else {
    context.out << matrix_text(flags.name).text;
  }
}

void list(const ListFlags& flags, Context& context) {
  list_matrices(flags, context);
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("list", "What there is: architectures, tasks, protocols, matrices");
  const auto flags = std::make_shared<ListFlags>();
  verb->add_option("kind", flags->kind, "architectures | tasks | protocols | matrices");
  verb->add_option("name", flags->name, "one of them, with its options");
  verb->add_flag("--show", flags->show, "print the text of a matrix");
  verb->callback([flags, &context] { list(*flags, context); });
}

}  // namespace spt::cli
