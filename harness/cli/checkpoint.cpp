#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/base/safetensors.h"
#include "harness/base/toml.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "harness/values.h"
#include "harness/worker_client.h"

namespace spt::cli {
namespace {

struct CheckpointFlags {
  std::string file, names, architecture, size, output, worker;
  std::vector<std::string> options, drop;
};

std::string tensor_shape(const RawTensor& tensor) {
  return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, " x "));
}

void show_checkpoint(const CheckpointFlags& flags, Context& context) {
  const SafetensorsFile file = read_safetensors(flags.file);
  int64_t values = 0;
  size_t width = 6;
  for (const auto& [name, tensor] : file.tensors) {
    width = std::max(width, name.size());
    values += static_cast<int64_t>(tensor.bytes.size()) / dtype_size(tensor.dtype, flags.file);
  }
  context.out << fmt::format("{}: {} tensors, {} values\n", flags.file, file.tensors.size(), values);
  for (const auto& [key, value] : file.metadata) context.out << fmt::format("{} = {}\n", key, value);
  context.out << fmt::format("  {:<{}}  {:<5}  {}\n", "tensor", width, "dtype", "shape");
  for (const auto& [name, tensor] : file.tensors)
    context.out << fmt::format("  {:<{}}  {:<5}  {}\n", name, width, tensor.dtype, tensor_shape(tensor));
}

/// A value as a matrix file would spell it; the quotes of a text may be left out.
OptionValue option_value(const std::vector<OptionSchema>& schema, const std::string& name, const std::string& text) {
  const std::string where = fmt::format("--option {}={}", name, text);
  const auto option = std::find_if(schema.begin(), schema.end(), [&](const OptionSchema& o) { return o.name == name; });
  if (option == schema.end()) {
    std::vector<std::string> known;
    for (const OptionSchema& o : schema) known.push_back(o.name);
    throw Error("{}: {}", where, unknown_name("option", name, known));
  }
  if (std::holds_alternative<std::string>(option->default_value)) return checked(*option, text, where);
  const TomlValue document = parse_toml("value = " + text, where);
  TomlReader reader(document, where, "");
  const OptionValue value = checked(*option, reader.scalar("value"), where);
  reader.finish();
  return value;
}

/// The architecture of the flags with its preset and options, or what the file says that it was made for.
ComponentSpec weights_architecture(const CheckpointFlags& flags, const Catalog& catalog) {
  if (flags.architecture.empty()) {
    const SafetensorsFile file = read_safetensors(flags.file);
    const auto name = file.metadata.find(kWeightsArchitecture), options = file.metadata.find(kWeightsOptions);
    if (name == file.metadata.end() || options == file.metadata.end())
      throw Error("{}: it does not say which architecture it was made for; give --architecture", flags.file);
    if (!flags.size.empty() || !flags.options.empty()) throw Error("--size and --option belong to --architecture");
    return {name->second, 1, options_from_json(parse_json(options->second, flags.file), flags.file)};
  }
  MatrixComponent component{flags.architecture, flags.architecture, flags.size, {}, "--architecture"};
  const ArchitectureEntry& entry = find_architecture_entry(catalog, flags.architecture, "--architecture");
  for (const std::string& given : flags.options) {
    const size_t at = given.find('=');
    if (at == std::string::npos || at == 0) throw Error("--option {}: it must be NAME=VALUE", given);
    const std::string name = given.substr(0, at);
    component.options[name] = {option_value(entry.options, name, given.substr(at + 1)), "--option " + given};
  }
  return architecture_spec(catalog, component, false);
}

void convert_checkpoint(const CheckpointFlags& flags, bool to_ours, Context& context) {
  const auto worker = make_worker_client({worker_program(flags.worker), default_cache()});
  const ComponentSpec architecture = weights_architecture(flags, worker->catalog());
  const ConvertAnswer answer =
      worker->convert({to_ours, flags.names, architecture.name, architecture.options, flags.file, flags.output, flags.drop});
  for (const auto& [from, to] : answer.taken) context.out << fmt::format("copied   {} -> {}\n", from, to);
  for (const std::string& name : answer.dropped) context.out << fmt::format("dropped  {}\n", name);
  context.out << fmt::format("{}: {} copied, {} dropped, SHA-256 {}\n", flags.output, answer.taken.size(), answer.dropped.size(),
                             answer.sha256);
}

CLI::App* convert_command(CLI::App& verb, const std::shared_ptr<CheckpointFlags>& flags, const std::string& name,
                          const std::string& effect) {
  CLI::App* command = verb.add_subcommand(name, effect);
  command->add_option("file", flags->file, "safetensors file")->required()->check(CLI::ExistingFile);
  command->add_option("--architecture", flags->architecture, "which of ours the weights belong to");
  command->add_option("--size", flags->size, "preset of the architecture");
  command->add_option("--option", flags->options, "option of the architecture, NAME=VALUE; may be given more than once");
  command->add_option("--output", flags->output, "safetensors file to write")->required()->check(path_given());
  command->add_option("--worker", flags->worker, "worker program (default: spt-bench-worker beside this program)");
  return command;
}

}  // namespace

void add_checkpoint(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("checkpoint", "Weights in safetensors files: look at, import from published names, export to them");
  verb->require_subcommand(1);
  const auto flags = std::make_shared<CheckpointFlags>();
  CLI::App* show = verb->add_subcommand("show", "Names, types and shapes of the tensors of a file, and its metadata");
  show->add_option("file", flags->file, "safetensors file")->required()->check(CLI::ExistingFile);
  show->callback([flags, &context] { show_checkpoint(*flags, context); });
  CLI::App* incoming = convert_command(*verb, flags, "import", "Write published weights under our names, for `checkpoint` of a matrix");
  incoming->add_option("--from", flags->names, "whose names the file has: gpt-neox, not-from-scratch")->required();
  incoming->add_option("--drop", flags->drop, "tensor to leave out although its name is not known; may be given more than once");
  incoming->get_option("--architecture")->required();
  incoming->callback([flags, &context] { convert_checkpoint(*flags, true, context); });
  CLI::App* outgoing = convert_command(*verb, flags, "export", "Write weights of ours under published names");
  outgoing->add_option("--to", flags->names, "whose names to write: gpt-neox, not-from-scratch")->required();
  outgoing->callback([flags, &context] { convert_checkpoint(*flags, false, context); });
}

}  // namespace spt::cli
