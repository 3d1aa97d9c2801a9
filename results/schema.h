#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spt::results {

/// PRAGMA application_id of our databases: "SPTB".
inline constexpr int64_t kApplicationId = 0x53505442;

/// Step i is the SQL that brings a database of schema version i (PRAGMA user_version) to i + 1; version 0 is an empty file. FORMAT.md says
/// what the tables mean. A step that has been released is never edited: a change is a new step.
const std::vector<std::string_view>& migrations();

/// Whether statfs(2) names a file system on which several machines may see one file: shared memory, and with it WAL, does not work there.
bool is_network_file_system(int64_t statfs_type);

}  // namespace spt::results
