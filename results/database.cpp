#include "results/database.h"

#include <sqlite3.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "results/schema.h"

namespace spt::results {
namespace {

constexpr const char* kInMemory = ":memory:";

// A file name as a URI that SQLite reads back as the same bytes.
std::string file_uri(const std::filesystem::path& file, std::string_view parameters) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '?' || c == '#' || c == '%') uri += fmt::format("%{:02X}", static_cast<int>(c));
    else uri += c;
  }
  return fmt::format("{}?{}", uri, parameters);
}

bool on_network(const std::filesystem::path& file) {
  struct statfs info{};
  return ::statfs(file.c_str(), &info) == 0 && is_network_file_system(static_cast<int64_t>(info.f_type));
}

bool is_locked(const SQLite::Exception& e) { return e.getErrorCode() == SQLITE_BUSY || e.getErrorCode() == SQLITE_LOCKED; }

}  // namespace

Database::Database(const std::filesystem::path& file, bool read_only, int busy_timeout_ms) : file_(file) {
  if (read_only && !std::filesystem::exists(file))
    throw Error("there is no database '{}'; spt-bench run makes one, --db names another", file.string());
  if (std::filesystem::is_directory(file)) throw Error("'{}' is a folder, not a database", file.string());
  translated([&] { open(read_only, busy_timeout_ms); });
  translated([&] {
    check_owner();
    const int64_t newest = static_cast<int64_t>(migrations().size());
    if (!read_only && version() < newest) migrate();
    if (version() > newest)
      throw Error("database '{}' has schema version {}; this program knows up to {}: use a newer spt-bench", file_.string(), version(),
                  newest);
    if (version() < newest)
      throw Error("database '{}' has the old schema version {}; spt-bench run brings it to {}", file_.string(), version(), newest);
    database_->exec("PRAGMA cache_size = -65536");  // 64 MB at most: keys are hashes, so their index is touched everywhere
    if (read_only) return;
    set_journal_mode(busy_timeout_ms);
    database_->exec("PRAGMA foreign_keys = ON");
  });
}

void Database::open(bool read_only, int busy_timeout_ms) {
  const int flags = (read_only ? SQLite::OPEN_READONLY : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) | SQLite::OPEN_NOMUTEX;
  try {
    database_ = std::make_unique<SQLite::Database>(file_.string(), flags, busy_timeout_ms);
    pragma("PRAGMA schema_version");
  } catch (const SQLite::Exception& e) {
    const bool folder_refuses = e.getErrorCode() == SQLITE_CANTOPEN || e.getErrorCode() == SQLITE_READONLY;  // WAL wants files beside it
    if (!read_only || !folder_refuses || !open_immutable()) throw;
  }
}

// A WAL database in a folder that we may not write to can be read only if nobody has it open, which then holds for as long as we read.
bool Database::open_immutable() {
  const std::filesystem::path wal = file_.string() + "-wal";
  std::error_code none;
  if (::access(file_.c_str(), R_OK) != 0 || (std::filesystem::exists(wal, none) && std::filesystem::file_size(wal, none) > 0)) return false;
  database_ =
      std::make_unique<SQLite::Database>(file_uri(file_, "immutable=1"), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX | SQLite::OPEN_URI);
  return true;
}

int64_t Database::pragma(const char* sql) {
  SQLite::Statement statement(*database_, sql);
  return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

int64_t Database::version() { return pragma("PRAGMA user_version"); }

void Database::check_owner() {
  const SQLite::Transaction snapshot(*database_,
                                     SQLite::TransactionBehavior::DEFERRED);  // another program may be filling the file just now
  const int64_t id = pragma("PRAGMA application_id");
  const bool empty = id == 0 && version() == 0 && pragma("SELECT count(*) FROM sqlite_schema") == 0;
  if (id != kApplicationId && !empty) throw Error("'{}' is an SQLite database of another program: it is left as it is", file_.string());
}

void Database::migrate() {
  database_->exec("PRAGMA foreign_keys = OFF");
  SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::EXCLUSIVE);
  for (int64_t from = version(); from < static_cast<int64_t>(migrations().size()); ++from) {  // asked again: another may have been here
    database_->exec(std::string(migrations()[static_cast<size_t>(from)]));
    database_->exec(fmt::format("PRAGMA user_version = {}", from + 1));
  }
  database_->exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  transaction.commit();
}

void Database::set_journal_mode(int busy_timeout_ms) {
  if (file_ == kInMemory) return;
  const bool network = on_network(file_);
  if (network)
    note_ = fmt::format("database '{}' is on a network file system: a rollback journal takes the place of WAL, and readers may wait",
                        file_.string());
  const std::string wanted = network ? "delete" : "wal";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_timeout_ms);
  for (;;) {  // SQLite does not wait by itself when the mode changes
    try {
      SQLite::Statement statement(*database_, "PRAGMA journal_mode = " + wanted);
      statement.executeStep();
      const std::string mode = statement.getColumn(0).getString();
      if (mode != wanted) throw Error("database '{}' cannot have journal mode {}: it stays {}", file_.string(), wanted, mode);
      break;
    } catch (const SQLite::Exception& e) {
      if (!is_locked(e) || std::chrono::steady_clock::now() >= deadline) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  database_->exec(network ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
}

Query Database::query(const char* sql) {
  return translated([&]() -> Query {
    std::unique_ptr<SQLite::Statement>& statement = statements_[sql];
    if (!statement) statement = std::make_unique<SQLite::Statement>(*database_, sql);
    return Query(*statement);
  });
}

std::string Database::explanation(const SQLite::Exception& e) const {
  const std::string name = file_.string();
  switch (e.getErrorCode()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format("database '{}' is locked by another program for too long; is a second run using it?", name);
    case SQLITE_NOTADB:
      return fmt::format("'{}' is not an SQLite database", name);
    case SQLITE_CORRUPT:
      return fmt::format("database '{}' is damaged ({}); `sqlite3 {} .recover` saves what can be read, and journals can be ingested again",
                         name, e.what(), name);
    case SQLITE_FULL:
      return fmt::format("database '{}' cannot grow: the disk is full", name);
    case SQLITE_IOERR:
      return fmt::format("database '{}' cannot be read or written ({}): is the disk full or gone?", name, e.what());
    case SQLITE_READONLY:
      return fmt::format("database '{}' may not be written ({})", name, e.what());
    case SQLITE_CANTOPEN:
      return fmt::format("database '{}' cannot be opened ({}): does its folder exist, and may it be written?", name, e.what());
    default:
      return fmt::format("database '{}': {}", name, e.what());
  }
}

}  // namespace spt::results
