#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/cli/cli.h"
#include "tasks/formats/data_commands.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/show.h"

namespace spt::cli {
namespace {

struct DataFlags {
  std::string root, from, generated;
  std::vector<std::string> tasks;
  formats::ListopsOptions listops;
  formats::ListopsCounts counts;
  formats::PathfinderMake pathfinder;
  int64_t seed = 0;
  formats::ShowOptions show;
  std::string out;
};

/// One of the verb's own subcommands, with the flag that all of them have.
CLI::App* data_command(CLI::App& verb, DataFlags& flags, const std::string& name, const std::string& effect) {
  CLI::App* command = verb.add_subcommand(name, effect);
  command->add_option("--data", flags.root, "folder of the data (default: $SPT_DATA, else ./data)");
  return command;
}

/// Options of one generator mean nothing to the other: giving one is a mistake.
void refuse_options(const CLI::App& command, const std::string& task, const std::vector<std::string>& options) {
  for (const std::string& option : options)
    if (command.count(option) > 0) throw Error("{} is no option of {}", option, task);
}

void make_chosen(const CLI::App& command, DataFlags& flags, const formats::LineSink& say) {
  const std::vector<std::string> listops_only = {"--max-length", "--min-length", "--max-depth", "--max-arguments",
                                                 "--train",      "--validation", "--test"};
  if (const formats::PathfinderSet* set = formats::find_pathfinder_set(flags.generated)) {
    refuse_options(command, flags.generated, listops_only);
    flags.pathfinder.seed = flags.seed;
    return formats::make_pathfinder_files(*set, flags.pathfinder, data_root(flags.root), say);
  }
  if (flags.generated == "listops") refuse_options(command, flags.generated, {"--count", "--threads"});
  flags.listops.seed = flags.seed;
  flags.listops.validate();
  formats::make_data(data_root(flags.root), flags.generated, flags.listops, flags.counts, say);
}

void add_make(CLI::App& verb, const std::shared_ptr<DataFlags>& flags, const formats::LineSink& say) {
  CLI::App* make = data_command(verb, *flags, "make", "Generate data files; goes on where it was stopped");
  make->add_option("task", flags->generated, "listops, pathfinder32, pathx, pathx256")->required();
  make->add_option("--seed", flags->seed, "seed of the generator")->capture_default_str();
  make->add_option("--count", flags->pathfinder.count, "Pathfinder: images")->capture_default_str();
  make->add_option("--threads", flags->pathfinder.threads, "Pathfinder: threads that draw; changes no image")->capture_default_str();
  make->add_option("--max-length", flags->listops.max_length, "listops: expressions are shorter, in tokens")->capture_default_str();
  make->add_option("--min-length", flags->listops.min_length, "listops: expressions are longer, in tokens")->capture_default_str();
  make->add_option("--max-depth", flags->listops.max_depth, "listops: levels of a tree")->capture_default_str();
  make->add_option("--max-arguments", flags->listops.max_arguments, "listops: arguments of an operator")->capture_default_str();
  make->add_option("--train", flags->counts.train, "listops: expressions in the train file")->capture_default_str();
  make->add_option("--validation", flags->counts.validation, "listops: expressions in the validation file")->capture_default_str();
  make->add_option("--test", flags->counts.test, "listops: expressions in the test file")->capture_default_str();
  make->callback([make, flags, say] { make_chosen(*make, *flags, say); });
}

void add_show(CLI::App& verb, const std::shared_ptr<DataFlags>& flags, const formats::LineSink& say) {
  CLI::App* show =
      data_command(verb, *flags, "show", "Look at examples: images as a contact sheet (PNG), signals as waveforms (SVG), texts as lines");
  show->add_option("task", flags->generated, "such as pathx")->required();
  show->add_option("-n", flags->show.n, "how many")->capture_default_str();
  show->add_option("--out", flags->out, "file to write (default: TASK.png or TASK.svg here)");
  show->callback([flags, say] {
    flags->show.out = flags->out;
    formats::show_data(data_root(flags->root), flags->generated, flags->show, say);
  });
}

}  // namespace

void add_data(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("data", "Official data: what is there, fetch, generate, verify, look at");
  verb->require_subcommand(1);
  const auto flags = std::make_shared<DataFlags>();
  const formats::LineSink say = [&context](const std::string& line) { context.out << line << "\n" << std::flush; };
  CLI::App* list = data_command(*verb, *flags, "list", "Which files each task needs, and whether they are there");
  list->add_option("tasks", flags->tasks, "default: all");
  list->callback([flags, say] { formats::list_data(data_root(flags->root), flags->tasks, say); });
  CLI::App* verify =
      data_command(*verb, *flags, "verify", "Compare every file with the published one; exit code 1 if a task's data are not whole");
  verify->add_option("tasks", flags->tasks, "default: all that have data");
  verify->callback([flags, say, &context] { context.exit_code = formats::verify_data(data_root(flags->root), flags->tasks, say) ? 0 : 1; });
  CLI::App* fetch = data_command(*verb, *flags, "fetch", "Download and verify; goes on where it was cut");
  fetch->add_option("tasks", flags->tasks, "fashion, image")->required();
  fetch->add_option("--mirror,--from", flags->from, "URL of a mirror, or a folder with the files");
  fetch->callback([flags, say] { formats::fetch_data(data_root(flags->root), flags->tasks, flags->from, say); });
  add_make(*verb, flags, say);
  add_show(*verb, flags, say);
}

}  // namespace spt::cli
