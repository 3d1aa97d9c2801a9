#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "harness/cli/cli.h"
#include "tasks/formats/data_commands.h"

namespace spt::cli {
namespace {

struct DataFlags {
  std::string root, from, generated;
  std::vector<std::string> tasks;
  formats::ListopsOptions listops;
  formats::ListopsCounts counts;
};

/// One of the verb's own subcommands, with the flag that all of them have.
CLI::App* data_command(CLI::App& verb, DataFlags& flags, const std::string& name, const std::string& effect) {
  CLI::App* command = verb.add_subcommand(name, effect);
  command->add_option("--data", flags.root, "folder of the data (default: $SPT_DATA, else ./data)");
  return command;
}

void add_make(CLI::App& verb, const std::shared_ptr<DataFlags>& flags, const formats::LineSink& say) {
  CLI::App* make = data_command(verb, *flags, "make", "Generate data files");
  make->add_option("task", flags->generated, "listops")->required();
  make->add_option("--max-length", flags->listops.max_length, "expressions are shorter, in tokens")->capture_default_str();
  make->add_option("--min-length", flags->listops.min_length, "expressions are longer, in tokens")->capture_default_str();
  make->add_option("--max-depth", flags->listops.max_depth, "levels of a tree")->capture_default_str();
  make->add_option("--max-arguments", flags->listops.max_arguments, "arguments of an operator")->capture_default_str();
  make->add_option("--seed", flags->listops.seed, "seed of the generator")->capture_default_str();
  make->add_option("--train", flags->counts.train, "expressions in the train file")->capture_default_str();
  make->add_option("--validation", flags->counts.validation, "expressions in the validation file")->capture_default_str();
  make->add_option("--test", flags->counts.test, "expressions in the test file")->capture_default_str();
  make->callback([flags, say] {
    flags->listops.validate();
    formats::make_data(data_root(flags->root), flags->generated, flags->listops, flags->counts, say);
  });
}

}  // namespace

void add_data(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("data", "Official data: what is there, fetch, generate, verify");
  verb->require_subcommand(1);
  const auto flags = std::make_shared<DataFlags>();
  const formats::LineSink say = [&context](const std::string& line) { context.out << line << "\n" << std::flush; };
  CLI::App* list = data_command(*verb, *flags, "list", "Which files each task needs, and whether they are there");
  list->add_option("tasks", flags->tasks, "default: all");
  list->callback([flags, say] { formats::list_data(data_root(flags->root), flags->tasks, say); });
  CLI::App* verify = data_command(*verb, *flags, "verify", "Compare every file with the published one; exit code 1 if a task's data are not whole");
  verify->add_option("tasks", flags->tasks, "default: all that have data");
  verify->callback([flags, say, &context] { context.exit_code = formats::verify_data(data_root(flags->root), flags->tasks, say) ? 0 : 1; });
  CLI::App* fetch = data_command(*verb, *flags, "fetch", "Download and verify; goes on where it was cut");
  fetch->add_option("tasks", flags->tasks, "fashion, image")->required();
  fetch->add_option("--from", flags->from, "URL of a mirror, or a folder with the files");
  fetch->callback([flags, say] { formats::fetch_data(data_root(flags->root), flags->tasks, flags->from, say); });
  add_make(*verb, flags, say);
}

}  // namespace spt::cli
