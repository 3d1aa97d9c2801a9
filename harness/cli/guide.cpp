#include "harness/cli/guide.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace spt::cli {
namespace {

/// A cell of a table: `|` would end it.
std::string guide_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// GitHub's anchor of a heading that is a plain name.
std::string guide_link(const std::string& name) { return fmt::format("[`{0}`](#{0})", name); }

std::string options_table(const std::vector<OptionSchema>& options) {
  if (options.empty()) return "No options.\n";
  std::string text = "| option | default | allowed | effect |\n|---|---|---|---|\n";
  for (const OptionSchema& option : options)
    text += fmt::format("| `{}` | {} | {} | {} |\n", option.name, guide_cell(to_text(option.default_value)),
                        guide_cell(range_text(option.info)), guide_cell(option.info.effect));
  return text;
}

template <class Entry>
std::string guide_heading(const Entry& entry) {
  return fmt::format("\n## {}\n\n{} (version {}).\n\nSource: {}\n\n", entry.name, entry.summary, entry.version, entry.source);
}

}  // namespace

std::string range_text(const OptionInfo& info) {
  std::string text;
  if (!info.choices.empty()) text = fmt::format("one of {}", fmt::join(info.choices, ", "));
  else if (info.min && info.max) text = fmt::format("{} to {}", *info.min, *info.max);
  else if (info.min) text = fmt::format("at least {}", *info.min);
  else if (info.max) text = fmt::format("at most {}", *info.max);
  if (!info.unit.empty()) text += (text.empty() ? "" : ", ") + info.unit;
  return text;
}

std::string options_text(const OptionMap& options) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : options) parts.push_back(fmt::format("{} = {}", name, to_text(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string architectures_guide(const Catalog& catalog) {
  std::string text =
      "# Architectures\n\n"
      "Written by `scripts/make-guides` from what the worker has registered. Each can be named in a matrix, with a size preset (`size = "
      "\"100K\"`: parameters\n"
      "of the body, within 10 %; a name in small letters is a published model) or with `options`. Proof of each: the cases below "
      "`tests/reference/cases`,\n"
      "weights, inputs, outputs and gradients of published code or of an independent implementation, which `spt-reference-tests --filter "
      "NAME` compares in\n"
      "float64.\n\n"
      "| name | what | causal with | presets |\n|---|---|---|---|\n";
  for (const ArchitectureEntry& entry : catalog.architectures) {
    std::vector<std::string> sizes;
    for (const auto& [name, options] : entry.sizes) sizes.push_back(name);
    text += fmt::format("| {} | {}{} | {} | {} |\n", guide_link(entry.name), guide_cell(entry.summary),
                        entry.trivial ? " (a baseline: every table shows it)" : "",
                        entry.causal.empty() ? "-" : "`" + options_text(entry.causal) + "`", fmt::join(sizes, " "));
  }
  for (const ArchitectureEntry& entry : catalog.architectures) {
    text += guide_heading(entry) + options_table(entry.options);
    if (!entry.sizes.empty()) text += "\n| preset | options |\n|---|---|\n";
    for (const auto& [name, options] : entry.sizes) text += fmt::format("| {} | {} |\n", name, options_text(options));
  }
  return text;
}

std::string tasks_guide(const Catalog& catalog) {
  std::string text =
      "# Tasks\n\n"
      "Written by `scripts/make-guides` from what the worker has registered. `spt-bench data list` says which data are here, how large "
      "they are and under which\n"
      "licence; `spt-bench data fetch`, `make` and `verify` get, generate and check them.\n\n"
      "| name | what |\n|---|---|\n";
  for (const TaskEntry& entry : catalog.tasks) text += fmt::format("| {} | {} |\n", guide_link(entry.name), guide_cell(entry.summary));
  text +=
      "\n## What two splits share\n\n"
      "A test opens each task and compares the examples of its splits by a hash of their content; only those of these tasks may meet. How "
      "many do is noted with every attempt.\n\n"
      "| task | what is in two splits |\n|---|---|\n";
  for (const TaskEntry& entry : catalog.tasks)
    text += fmt::format("| {} | {} |\n", guide_link(entry.name), entry.leaks.empty() ? "nothing" : guide_cell(entry.leaks));
  for (const TaskEntry& entry : catalog.tasks) text += guide_heading(entry) + options_table(entry.options);
  return text;
}

}  // namespace spt::cli
