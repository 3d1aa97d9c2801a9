#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/cli/cli.h"
#include "harness/cli/guide.h"
#include "harness/matrix.h"
#include "harness/values.h"
#include "harness/worker_client.h"

namespace spt::cli {
namespace {

struct ListFlags {
  std::string kind, name, worker, size, task = "fashion", profile = "fair", data;
  bool show = false, groups = false, markdown = false;
};

const std::vector<std::string> kKinds = {"architectures", "tasks", "protocols", "matrices"};

void print_title(Context& context, const std::string& title) { context.out << title << '\n'; }

void print_row(Context& context, const std::string& name, const std::string& text) {
  context.out << fmt::format("  {:<14}  {}\n", name, text);
}

void print_options(Context& context, const std::vector<OptionSchema>& options) {
  context.out << (options.empty() ? "options: none\n" : "options\n");
  for (const OptionSchema& option : options) {
    const std::string range = range_text(option.info);
    context.out << fmt::format("  {:<20} = {:<12} {}{}\n", option.name, to_text(option.default_value), option.info.effect,
                               range.empty() ? "" : " (" + range + ")");
  }
}

template <class Entry>
void print_head(Context& context, const Entry& entry) {
  context.out << fmt::format("{} (version {}): {}\nsource: {}\n", entry.name, entry.version, entry.summary, entry.source);
}

void print_more(Context& context, const ArchitectureEntry& entry) {
  if (entry.trivial) context.out << "a baseline: every table shows it\n";
  context.out << "causal: " << (entry.causal.empty() ? "it cannot be" : options_text(entry.causal)) << '\n';
  for (const auto& [name, options] : entry.sizes) context.out << fmt::format("size {:<5} {}\n", name, options_text(options));
}
void print_more(Context&, const TaskEntry&) {}
void print_more(Context& context, const ProtocolEntry& entry) {
  std::vector<std::string> stages;
  for (const StageEntry& stage : entry.stages) stages.push_back(fmt::format("{} ({})", stage.name, stage.objective));
  context.out << fmt::format("stages: {}\n", fmt::join(stages, ", then "));
}

template <class Entry>
void list_entries(const std::vector<Entry>& entries, const std::string& kind, const std::string& name, Context& context) {
  if (name.empty()) {
    print_title(context, kind);
    for (const Entry& entry : entries) print_row(context, entry.name, entry.summary);
    return;
  }
  std::vector<std::string> known;
  for (const Entry& entry : entries) {
    known.push_back(entry.name);
    if (entry.name != name) continue;
    print_head(context, entry);
    print_more(context, entry);
    print_options(context, entry.options);
    return;
  }
  throw Error("{}", unknown_name(kind.substr(0, kind.size() - 1), name, known));
}

void list_matrices(const ListFlags& flags, Context& context) {
  if (flags.name.empty()) {
    print_title(context, "matrices");
    for (const auto& [name, text] : matrix_files()) {
      const Matrix matrix = parse_matrix(text, std::string(name) + ".toml");
      print_row(context, std::string(name),
                fmt::format("{} architectures, {} tasks, {} protocols, {} seeds ({})", matrix.architectures.size(), matrix.tasks.size(),
                            matrix.protocols.size(), matrix.seeds.size(), matrix.profile));
    }
    return;
  }
  const MatrixText matrix = matrix_text(flags.name);
  if (flags.show) context.out << matrix.text;
  else {
    const Matrix parsed = parse_matrix(matrix.text, matrix.file);
    const auto row = [&](const char* title, const std::vector<MatrixComponent>& components) {
      std::vector<std::string> labels;
      for (const MatrixComponent& component : components) labels.push_back(component.label);
      print_row(context, title, fmt::format("{}", fmt::join(labels, ", ")));
    };
    print_title(context,
                fmt::format("{} ({}), seeds {}; --show prints the file", parsed.name, parsed.profile, fmt::join(parsed.seeds, ", ")));
    row("architectures", parsed.architectures);
    row("tasks", parsed.tasks);
    row("protocols", parsed.protocols);
  }
}

/// The model that scratch training of a task would have, with the values of its recipe.
ModelQuery scratch_query(const Catalog& catalog, const ListFlags& flags) {
  const auto component = [](const std::string& name, const std::string& flag) { return MatrixComponent{name, name, "", {}, flag}; };
  MatrixComponent architecture = component(flags.name, "list architectures");
  if (!flags.size.empty()) architecture.origin = "--size", architecture.size = flags.size;
  const MatrixComponent task = component(flags.task, "--task"), protocol = component("scratch", "--groups");
  const ProtocolUse use = protocol_use(catalog, protocol);
  const StageEntry& stage = use.entry->stages.back();
  const Matrix no_matrix;  // so that recipes and defaults decide
  return {architecture_spec(catalog, architecture, false),
          task_spec(catalog, task),
          objective_spec(catalog, use, stage, 0),
          TrainValues(no_matrix, catalog).train(architecture, task, protocol.name, stage.name),
          flags.profile,
          false};
}

std::string shape_text(const std::vector<int64_t>& shape) { return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x ")); }

void print_groups(const ModelQuery& query, const ModelAnswer& answer, Context& context) {
  context.out << fmt::format("{} on {}, profile {}: {} trained tensors, {} parameters; learning rates before the schedule ({})\n",
                             query.architecture.name, query.task.name, query.profile, answer.groups.size(), answer.parameters,
                             query.train.schedule);
  size_t width = 6;
  for (const GroupRow& row : answer.groups) width = std::max(width, row.tensor.size());
  context.out << fmt::format("  {:<{}}  {:<14}  {:<10}  {:>8}  {:>8}\n", "tensor", width, "shape", "role", "lr", "decay");
  for (const GroupRow& row : answer.groups)
    context.out << fmt::format("  {:<{}}  {:<14}  {:<10}  {:>8}  {:>8}\n", row.tensor, width, shape_text(row.shape), row.role, row.lr,
                               row.weight_decay);
}

/// Tensor, shape, role, learning rate and decay of everything that an architecture trains.
void list_groups(const ListFlags& flags, Context& context) {
  static const std::vector<std::string> kProfiles = {"fair", "paper"};
  if (flags.kind != "architectures" || flags.name.empty())
    throw Error("--groups belongs to one architecture: spt-bench list architectures NAME --groups");
  if (std::find(kProfiles.begin(), kProfiles.end(), flags.profile) == kProfiles.end())
    throw Error("{}", unknown_name("profile", flags.profile, kProfiles));
  const auto worker = make_worker_client({worker_program(flags.worker), default_cache()});
  const ModelQuery query = scratch_query(worker->catalog(), flags);
  const DescribeAnswer answer = worker->describe({data_root(flags.data).string(), {}, {query}});
  SPT_CHECK(answer.models.size() == 1, "{} answers about one model", answer.models.size());
  if (!answer.models[0].error.empty()) throw Error("{} on task {}: {}", flags.name, flags.task, answer.models[0].error);
  print_groups(query, answer.models[0], context);
}

void print_guide(const Catalog& catalog, const std::string& kind, Context& context) {
  if (kind != "architectures" && kind != "tasks") throw Error("--markdown goes with architectures or tasks, not with '{}'", kind);
  context.out << (kind == "tasks" ? tasks_guide(catalog) : architectures_guide(catalog));
}

void list(const ListFlags& flags, Context& context) {
  if (flags.groups) return list_groups(flags, context);
  if (!flags.kind.empty() && std::find(kKinds.begin(), kKinds.end(), flags.kind) == kKinds.end())
    throw Error("{}", unknown_name("list", flags.kind, kKinds));
  const auto wanted = [&](const char* kind) { return flags.kind.empty() || flags.kind == kind; };
  if (flags.kind != "matrices") {
    const Catalog catalog = make_worker_client({worker_program(flags.worker), default_cache()})->catalog();
    if (flags.markdown) return print_guide(catalog, flags.kind, context);
    if (wanted("architectures")) list_entries(catalog.architectures, "architectures", flags.name, context);
    if (wanted("tasks")) list_entries(catalog.tasks, "tasks", flags.name, context);
    if (wanted("protocols")) list_entries(catalog.protocols, "protocols", flags.name, context);
  }
  if (wanted("matrices")) list_matrices(flags, context);
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("list", "What there is: architectures, tasks, protocols, matrices");
  const auto flags = std::make_shared<ListFlags>();
  verb->add_option("kind", flags->kind, "architectures | tasks | protocols | matrices; all where it is left out");
  verb->add_option("name", flags->name, "one of them, with its options and source");
  verb->add_flag("--show", flags->show, "print the file of a matrix");
  verb->add_flag("--groups", flags->groups, "print tensor, shape, role, learning rate and decay of everything that an architecture trains");
  verb->add_option("--size", flags->size, "preset of the architecture (--groups; default: its default options)");
  verb->add_option("--task", flags->task, "task whose inputs, outputs and recipe it has (--groups)")->capture_default_str();
  verb->add_option("--profile", flags->profile, "fair | paper: whose rules (--groups)")->capture_default_str();
  verb->add_option("--data", flags->data, "data folder (default: SPT_DATA, else ./data)");
  verb->add_flag("--markdown", flags->markdown, "print the whole guide of architectures or tasks (docs/architectures.md, docs/tasks.md)");
  verb->add_option("--worker", flags->worker, "worker program (default: spt-bench-worker beside this program)");
  verb->callback([flags, &context] { list(*flags, context); });
}

}  // namespace spt::cli
