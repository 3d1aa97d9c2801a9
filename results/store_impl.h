#pragma once

#include "results/database.h"
#include "results/store.h"

namespace spt::results {

struct Store::Impl {
  Impl(const std::filesystem::path& file, bool read_only, int busy_timeout_ms) : database(file, read_only, busy_timeout_ms) {}
  Database database;
};

/// Row of a stage by its key; 0 where it is not known.
int64_t find_stage(Database& database, const std::string& key);

/// ... or an Error that names it.
int64_t require_stage(Database& database, const std::string& key);

/// Row of an attempt, made (as running) where it is missing.
int64_t require_attempt(Database& database, int64_t stage, int64_t number);

/// Brings the columns of a stage that follow from its attempts up to date.
void refresh_stage(Database& database, int64_t stage);

}  // namespace spt::results
