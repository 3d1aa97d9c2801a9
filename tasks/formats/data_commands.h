#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tasks/formats/listops.h"

namespace spt::formats {

/// Receives what a command says, a line at a time.
using LineSink = std::function<void(const std::string&)>;

/// Tasks that `spt-bench data` knows, sorted.
std::vector<std::string> data_tasks();

/// What each task's data are, whether they are there, and how to get them. Looks, reads nothing. No names: every task.
/// Errors: Error for an unknown task, naming the known ones.
void list_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const LineSink& say);

/// Reads and hashes the files. A partial or different set is recorded in `<data root>/<task>/verified.json`, for matrices that take it with
/// partial = true. No names: every task that has data.
///
/// True if each task asked for has its whole official data (listops: files in which every label is right).
/// Errors: Error for an unknown task.
bool verify_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const LineSink& say);

/// Downloads, or takes from `from`, a URL or a folder (fetch.h). Errors: Error for no or an unknown task; DataError as fetch().
void fetch_data(const std::filesystem::path& data_root, const std::vector<std::string>& tasks, const std::string& from,
                const LineSink& say);

/// Generates the files of listops below the data root (those of Pathfinder: make_pathfinder_files()).
/// Errors: Error for another task, naming those that are generated, and as make_listops_files().
void make_data(const std::filesystem::path& data_root, const std::string& task, const ListopsOptions& options, const ListopsCounts& counts,
               const LineSink& say);

}  // namespace spt::formats
