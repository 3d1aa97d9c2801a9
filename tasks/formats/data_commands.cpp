#include "tasks/formats/data_commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "harness/base/error.h"
#include "tasks/formats/aan.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/cache_folder.h"
#include "tasks/formats/compressed.h"
#include "tasks/formats/fetch.h"
#include "tasks/formats/imdb.h"
#include "tasks/formats/manifest.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/speech.h"

namespace spt::formats {
namespace {

/// The data of one task, as the commands see them.
struct DataSource {
  std::string task;
  std::function<bool(const std::filesystem::path&)> present;
  std::function<void(const std::filesystem::path&, const LineSink&)> list;
  std::function<bool(const std::filesystem::path&, const LineSink&)> verify;
  std::function<void(const std::filesystem::path&, const std::string& from, const LineSink&)> fetch;
};

void list_manifest(const Manifest& manifest, const std::filesystem::path& root, const LineSink& say) {
  say(fmt::format("{}: {}; {}", manifest.task, manifest.title, manifest.source));
  int64_t bytes = 0;
  for (const OfficialFile& file : manifest.files) bytes += file.bytes;
  say(fmt::format("  official: {} files, {} bytes; licence: {}", manifest.files.size(), bytes, manifest.licence));
  const auto folder = data_folder(manifest, root);
  const auto there = [&](const OfficialFile& file) { return folder && find_packed(*folder, file.name).has_value(); };
  const auto present = std::count_if(manifest.files.begin(), manifest.files.end(), there);
  if (folder) say(fmt::format("  {} of {} files in {}", present, manifest.files.size(), folder->string()));
  for (const OfficialFile& file : manifest.files)
    if (!there(file)) say(fmt::format("  missing {} ({} bytes, SHA-256 {})", file.name, file.bytes, file.sha256));
  if (present == static_cast<int64_t>(manifest.files.size())) return;
  const std::string package = manifest.package.empty() ? "" : fmt::format("; or install the package {}", manifest.package);
  say(fmt::format("  spt-bench data fetch {} writes them to {}{}", manifest.task, (root / manifest.folders.front()).string(), package));
}

void record_local_data(const Manifest& manifest, const std::filesystem::path& root, const Verification& found, const LineSink& say) {
  const std::filesystem::path file = verified_record_file(manifest, root);
  // A data root for many users is often read-only; then planning reads the files each time.
  const std::filesystem::path folder = std::filesystem::exists(file.parent_path()) ? file.parent_path() : root;
  if (!may_write(folder)) return say(fmt::format("  not recorded: '{}' cannot be written", folder.string()));
  write_verified_record(manifest, root, found);
  say(fmt::format("  recorded in {}; to train on it, give the task partial = true", file.string()));
}

bool verify_manifest(const Manifest& manifest, const std::filesystem::path& root, const LineSink& say) {
  const Verification found = verify(manifest, root);
  if (!found.any()) {
    say(fmt::format("{}: no data; spt-bench data list {} tells how to get them", manifest.task, manifest.task));
    return false;
  }
  say(fmt::format("{}: {} in {}, data hash {}", manifest.task, found.official() ? "complete and as published" : "partial or different",
                  found.folder.string(), found.data_hash()));
  for (const FileCheck& file : found.files) {
    if (file.state == FileState::kMissing) say(fmt::format("  missing {}", file.name));
    if (file.state == FileState::kDifferent)
      say(file.problem.empty() ? fmt::format("  different {} (SHA-256 {})", file.name, file.sha256) : "  damaged " + file.problem);
  }
  // An old record of a smaller set would still be planned with.
  if (!found.official() || std::filesystem::exists(verified_record_file(manifest, root))) record_local_data(manifest, root, found, say);
  return found.official();
}

DataSource manifest_source(const Manifest& manifest) {
  return {.task = manifest.task,
          .present = [&manifest](const auto& root) { return data_folder(manifest, root).has_value(); },
          .list = [&manifest](const auto& root, const LineSink& say) { list_manifest(manifest, root, say); },
          .verify = [&manifest](const auto& root, const LineSink& say) { return verify_manifest(manifest, root, say); },
          .fetch = [&manifest](const auto& root, const std::string& from,
                               const LineSink& say) { fetch(manifest, root, {.from = from, .report = say}); }};
}

constexpr std::array<std::string_view, 3> kListopsSplits = {"train", "validation", "test"};

bool listops_present(const std::filesystem::path& root) {
  return std::any_of(kListopsSplits.begin(), kListopsSplits.end(),
                     [&](auto split) { return std::filesystem::exists(listops_file(root / "listops", split)); });
}

void list_listops(const std::filesystem::path& root, const LineSink& say) {
  say("listops: ListOps; Nangia and Bowman 2018, Long Range Arena (arXiv:2011.04006)");
  say("  official: 96,000 train, 2,000 validation and 2,000 test expressions in 3 files; licence: Apache 2.0 (generator)");
  say("  generated when it is trained on; files are needed for the option source = \"lra\" only");
  for (const std::string_view split : kListopsSplits) {
    const std::filesystem::path file = listops_file(root / "listops", split);
    say(fmt::format("  {} {}", std::filesystem::exists(file) ? "there" : "missing", file.string()));
  }
  say("  spt-bench data make listops writes files of the same kind and layout");
}

bool verify_listops(const std::filesystem::path& root, const LineSink& say) {
  if (!listops_present(root)) {
    say("listops: no files; spt-bench data list listops tells when they are needed");
    return false;
  }
  bool whole = true;
  for (const std::string_view split : kListopsSplits) {
    try {
      const ListopsExamples examples = read_listops_file(listops_file(root / "listops", split));
      constexpr ListopsCounts kOfficial;
      const int64_t official = split == "train" ? kOfficial.train : split == "test" ? kOfficial.test : kOfficial.validation;
      say(fmt::format("listops: {}: {} expressions, every label is the value of its expression{}", split, examples.size(),
                      examples.size() == official ? "" : fmt::format("; Long Range Arena has {}", official)));
      whole = whole && examples.size() == official;
    } catch (const Error& e) {  // a verdict on this file: the others are still looked at
      say(fmt::format("listops: {}", e.what()));
      whole = false;
    }
  }
  return whole;
}

void list_tree(const TreeData& tree, const std::filesystem::path& root, const LineSink& say) {
  say(fmt::format("{}: {}; {}", tree.task, tree.title, tree.source));
  say(fmt::format("  official: {}{}; licence: {}", tree.size, tree.checksum.empty() ? "" : ", SHA-256 " + tree.checksum, tree.licence));
  const auto found = tree.find(root);
  say(found ? fmt::format("  there: {}", found->string()) : fmt::format("  missing: {}", tree.how_to_get(root)));
}

bool verify_tree(const TreeData& tree, const std::filesystem::path& root, const LineSink& say) {
  if (!tree.find(root)) {
    say(fmt::format("{0}: no data; spt-bench data list {0} tells how to get them", tree.task));
    return false;
  }
  try {
    const TreeData::Verdict found = tree.verify(root);
    say(fmt::format("{}: {}, {}, data hash {}", tree.task, found.official ? "complete and as published" : "partial or different",
                    found.summary, found.data_hash));
    return found.official;
  } catch (const DataError& e) {  // the verdict that was asked for
    say(fmt::format("{}: damaged: {}", tree.task, e.what()));
    return false;
  }
}

DataSource tree_source(const TreeData& tree) {
  return {.task = tree.task,
          .present = [tree](const auto& root) { return tree.find(root).has_value(); },
          .list = [tree](const auto& root, const LineSink& say) { list_tree(tree, root, say); },
          .verify = [tree](const auto& root, const LineSink& say) { return verify_tree(tree, root, say); },
          .fetch = [tree](const auto& root, const auto&,
                          const auto&) { throw Error("{} is not fetched: {}", tree.task, tree.how_to_get(root)); }};
}

DataSource pathfinder_source(const PathfinderSet& set) {
  return {.task = set.task,
          .present = [&set](const auto& root) { return find_pathfinder(set, root).has_value(); },
          .list = [&set](const auto& root, const LineSink& say) { list_pathfinder(set, root, say); },
          .verify = [&set](const auto& root, const LineSink& say) { return verify_pathfinder(set, root, say); },
          .fetch =
              [&set](const auto& root, const auto&, const auto&) {
                throw Error(
                    "{} is generated, not fetched: spt-bench data make {}; Long Range Arena's own images are in its lra_release archive, "
                    "of which {} goes into '{}'",
                    set.task, set.task, set.folder, (root / "pathfinder").string());
              }};
}

std::vector<DataSource> data_sources() {
  std::vector<DataSource> sources;
  for (const Manifest& manifest : manifests()) sources.push_back(manifest_source(manifest));
  sources.push_back({.task = "listops",
                     .present = listops_present,
                     .list = list_listops,
                     .verify = verify_listops,
                     .fetch = [](const auto&, const auto&, const auto&) {
                       throw Error("listops is generated, not fetched: spt-bench data make listops");
                     }});
  for (const TreeData& tree : {aan_tree(), bidmc_tree(BidmcTarget::kHeartRate), bidmc_tree(BidmcTarget::kRespiratoryRate),
                               bidmc_tree(BidmcTarget::kSpO2), imdb_tree(), speech_tree()})
    sources.push_back(tree_source(tree));
  for (const PathfinderSet& set : pathfinder_sets()) sources.push_back(pathfinder_source(set));
  std::sort(sources.begin(), sources.end(), [](const DataSource& a, const DataSource& b) { return a.task < b.task; });
  return sources;
}

/// Those asked for, in the order asked; all if none is.
std::vector<DataSource> chosen_sources(const std::vector<std::string>& tasks) {
  std::vector<DataSource> all = data_sources();
  if (tasks.empty()) return all;
  std::vector<DataSource> chosen;
  for (const std::string& task : tasks) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const DataSource& source) { return source.task == task; });
    if (found == all.end()) throw Error("{}", unknown_name("task", task, data_tasks()));
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace

std::vector<std::string> data_tasks() {
  std::vector<std::string> names;
  for (const DataSource& source : data_sources()) names.push_back(source.task);
  return names;
}

void list_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const LineSink& say) {
  for (const DataSource& source : chosen_sources(tasks)) source.list(data_root, say);
}

bool verify_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const LineSink& say) {
  bool whole = true;
  bool any = false;
  for (const DataSource& source : chosen_sources(tasks)) {
    if (tasks.empty() && !source.present(data_root)) continue;
    any = true;
    whole = source.verify(data_root, say) && whole;
  }
  if (!any) say(fmt::format("no data of any task in '{}'; spt-bench data list tells how to get them", data_root.string()));
  return any && whole;
}

void fetch_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const std::string& from,
                const LineSink& say) {
  if (tasks.empty()) throw Error("which data? give tasks: {}", fmt::join(data_tasks(), ", "));
  for (const DataSource& source : chosen_sources(tasks)) source.fetch(data_root, from, say);
}

void make_data(const std::filesystem::path& data_root, const std::string& task, const ListopsOptions& options, const ListopsCounts& counts,
               const LineSink& say) {
  if (task != "listops") {
    std::vector<std::string> known = {"listops"};
    for (const PathfinderSet& set : pathfinder_sets()) known.push_back(set.task);
    throw Error("{}", unknown_name("generated data set", task, known));
  }
  for (const std::filesystem::path& file : make_listops_files(options, counts, data_root / "listops"))
    say(fmt::format("listops: wrote {}", file.string()));
}

}  // namespace spt::formats
