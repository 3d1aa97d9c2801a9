#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>

#include "harness/base/error.h"

namespace spt::results {

/// A prepared statement in use; resets it at the end of the scope, so that no statement keeps a read transaction open.
class Query {
 public:
  explicit Query(SQLite::Statement& statement) : statement_(statement) {}
  ~Query() { statement_.tryReset(); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  template <class... A>
  Query& bind(const A&... values) {
    statement_.tryReset();
    int index = 0;
    (statement_.bind(++index, values), ...);  // NaN is stored as NULL
    return *this;
  }
  template <class... A>
  int64_t run(const A&... values) {  ///< binds and executes. \return rows changed
    bind(values...);
    return statement_.exec();
  }
  bool step() { return statement_.executeStep(); }
  bool null(int column) const { return statement_.getColumn(column).isNull(); }
  int64_t integer(int column) const { return statement_.getColumn(column).getInt64(); }
  double real(int column) const {  ///< NULL is NaN
    const SQLite::Column value = statement_.getColumn(column);
    return value.isNull() ? std::numeric_limits<double>::quiet_NaN() : value.getDouble();
  }
  std::string text(int column) const { return statement_.getColumn(column).getString(); }
  SQLite::Statement& statement() { return statement_; }

 private:
  SQLite::Statement& statement_;
};

/// An open database of ours with its cache of prepared statements. SQLite's errors become Errors that name the file.
class Database {
 public:
  /// Checks that the file is ours and migrates it (unless read_only). busy_timeout_ms: how long a locked database is waited for.
  Database(const std::filesystem::path& file, bool read_only, int busy_timeout_ms);

  /// `sql` is a constant: the statement is prepared once for each address.
  Query query(const char* sql);

  /// body() in one writing transaction, begun IMMEDIATE so that it can't lose its turn between a read and a write.
  template <class Body>
  auto write(Body&& body) {
    return translated([&] {
      SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
      return committed(transaction, body);
    });
  }
  /// body() on one snapshot.
  template <class Body>
  auto read(Body&& body) {
    return translated([&] {
      SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::DEFERRED);
      return committed(transaction, body);
    });
  }
  int64_t last_id() const { return database_->getLastInsertRowid(); }
  const std::string& note() const { return note_; }

 private:
  template <class Body>
  auto translated(Body&& body) {
    try {
      return body();
    } catch (const SQLite::Exception& e) {
      throw Error(explanation(e));
    }
  }
  template <class Body>
  auto committed(SQLite::Transaction& transaction, Body& body) {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      transaction.commit();
    } else {
      auto result = body();
      transaction.commit();
      return result;
    }
  }
  std::string explanation(const SQLite::Exception& e) const;
  void open(bool read_only, int busy_timeout_ms);
  bool open_immutable();
  void check_owner();
  int64_t version();
  int64_t pragma(const char* sql);
  void migrate();
  void set_journal_mode(int busy_timeout_ms);

  std::filesystem::path file_;
  std::string note_;
  std::unique_ptr<SQLite::Database> database_;
  std::unordered_map<const char*, std::unique_ptr<SQLite::Statement>> statements_;  // end before the database they belong to
};

}  // namespace spt::results
