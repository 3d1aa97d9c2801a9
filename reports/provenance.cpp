#include "reports/provenance.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

namespace spt::reports {
namespace {

using StampCounts = std::map<std::string, size_t>;
using StampField = std::function<std::string(const results::ResultRow&)>;

StampCounts count_stamps(std::span<const results::ResultRow> rows, const StampField& field) {
  StampCounts counts;
  std::set<std::string_view> seen;  // a job under two labels has two rows
  for (const results::ResultRow& row : rows) {
    if (row.status == "done" && seen.insert(row.job_key).second) ++counts[field(row)];
  }
  return counts;
}

std::string stamp_counts_text(const StampCounts& counts) {
  std::string text;
  for (const auto& [value, count] : counts)
    text += fmt::format("{}{} ({} job{})", text.empty() ? "" : ", ", value.empty() ? "unknown" : value, count, count == 1 ? "" : "s");
  return text;
}

}  // namespace

std::string libtorch_minor(const std::string& version) {
  const size_t first = version.find('.');
  return first == std::string::npos ? version : version.substr(0, version.find_first_not_of("0123456789", first + 1));
}

std::vector<std::string> mixed_stamps(std::span<const results::ResultRow> rows) {
  std::map<std::string, std::pair<StampCounts, StampCounts>> tasks;
  for (const results::ResultRow& row : rows) {
    if (row.status != "done") continue;
    auto& [kinds, versions] = tasks[row.task];
    ++kinds[row.device_kind];
    ++versions[libtorch_minor(row.libtorch)];
  }
  std::vector<std::string> problems;
  for (const auto& [task, counts] : tasks) {
    if (counts.first.size() > 1) problems.push_back(fmt::format("task '{}' mixes device kinds: {}", task, stamp_counts_text(counts.first)));
    if (counts.second.size() > 1)
      problems.push_back(fmt::format("task '{}' mixes LibTorch versions: {}", task, stamp_counts_text(counts.second)));
  }
  return problems;
}

std::vector<std::string> stamp_differences(std::span<const results::ResultRow> rows) {
  const std::pair<const char*, StampField> fields[] = {
      {"device model", [](const auto& row) { return row.device_model; }},
      {"CPU capability", [](const auto& row) { return row.cpu_capability; }},
      {"threads", [](const auto& row) { return std::to_string(row.threads); }},
      {"LibTorch", [](const auto& row) { return row.libtorch; }},
      {"build", [](const auto& row) { return row.build_id.substr(0, 12); }},
  };
  std::vector<std::string> differences;
  for (const auto& [name, field] : fields) {
    const StampCounts counts = count_stamps(rows, field);
    if (counts.size() > 1)
      differences.push_back(fmt::format("Jobs differ in {}: {}; numbers may differ in their last bits.", name, stamp_counts_text(counts)));
  }
  return differences;
}

std::vector<std::string> device_kinds(std::span<const results::ResultRow> rows) {
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : count_stamps(rows, [](const auto& row) { return row.device_kind; })) kinds.push_back(kind);
  return kinds;
}

}  // namespace spt::reports
