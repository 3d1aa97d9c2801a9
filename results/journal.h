#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/file.h"
#include "results/record.h"

namespace spt::results {

/// One line without its newline; floats round-trip, NaN and infinities as strings "nan", "inf", "-inf".
std::string format_line(const JournalLine& line);
std::string format_fields(const Event& event);                          ///< the fields of one event as they stand in its line
JournalLine parse_line(std::string_view text, std::string_view where);  ///< strict. Errors: Error that names where

/// The writing end, held by a worker: numbers the lines of its attempt, one write(2) each. Cuts off the line that a killed writer left
/// torn.
class JournalWriter {
 public:
  JournalWriter(const std::filesystem::path& file, std::string stage_key, int64_t attempt);
  void write(int64_t step, Event event);
  void sync();

 private:
  AppendFile file_;
  std::string stage_key_;
  int64_t attempt_;
  int64_t sequence_ = 0;
};

struct JournalTail {
  std::vector<JournalLine> lines;
  std::vector<std::string> problems;  ///< lines that are no journal lines: place and reason; a torn last line is not one
  uint64_t offset = 0;                ///< read up to here: give it to the next call
};

/// Whole lines from `offset` on; a torn last line is left for the next call. A missing file is an empty journal.
JournalTail read_journal(const std::filesystem::path& file, uint64_t offset);

}  // namespace spt::results
