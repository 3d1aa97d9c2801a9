#include "harness/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "harness/base/error.h"
#include "harness/base/file.h"

namespace spt::cli {
namespace {

// One line a verb.
constexpr void (*kVerbs[])(CLI::App&, Context&) = {add_checkpoint, add_data,   add_doctor, add_list,
                                                   add_plan,       add_report, add_run,    add_status};

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(verb->get_name());
  std::sort(names.begin(), names.end());
  return names;
}

// CLI11 says only that an argument was not expected; the first word is a verb, and the user wants to know which there are.
void check_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return;
  const std::vector<std::string> known = verb_names(app);
  if (std::find(known.begin(), known.end(), arguments[0]) == known.end()) throw Error("{}", unknown_name("command", arguments[0], known));
}

void check_flag(const CLI::App& app, const std::string& argument) {
  if (!argument.starts_with("--")) return;
  std::vector<std::string> known;
  for (const CLI::App* verb : app.get_subcommands())
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  throw Error("{}", unknown_name("flag", argument.substr(0, argument.find('=')), known));
}

void parse(CLI::App& app, const std::vector<std::string>& arguments) {
  check_verb(app, arguments);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  app.parse(reversed);
}

}  // namespace

int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Context context{out, err};
  CLI::App app("Trains sequence models under matched priors and compares them.", "spt-bench");
  app.require_subcommand(1);
  for (const auto add : kVerbs) add(app, context);
  try {
    parse(app, arguments);
    return context.exit_code;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help
      app.exit(e, out, err);
      return 0;
    }
    try {
      if (dynamic_cast<const CLI::ExtrasError*>(&e))
        for (const std::string& argument : app.remaining(true)) check_flag(app, argument);
      err << "spt-bench: " << e.what() << "; --help shows what there is\n";
    } catch (const Error& better) {
      err << "spt-bench: " << better.what() << '\n';
    }
  } catch (const std::exception& e) {  // an Error, or what the standard library says of a path or of memory
    err << "spt-bench: " << e.what() << '\n';
  }
  return 2;
}

MatrixText matrix_text(const std::string& name) {
  for (const auto& [shipped, text] : matrix_files())
    if (shipped == name) return {std::string(text), name + ".toml"};
  if (std::filesystem::is_regular_file(name)) return {read_file(name), name};
  std::vector<std::string> known;
  for (const auto& [shipped, text] : matrix_files()) known.emplace_back(shipped);
  throw Error("{}; or give the path of a matrix file", unknown_name("matrix", name, known));
}

std::filesystem::path data_root(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* variable = std::getenv("SPT_DATA");
  return variable && *variable ? variable : "data";
}

}  // namespace spt::cli
