#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// What to do with a row: the line it begins in, counted from 1, and its fields.
using TsvVisitor = std::function<void(int64_t line, std::span<const std::string> fields)>;

/// Tab-separated text by the rules of csv readers, in pieces of any size: a field that begins with a double quote ends at the next one that
/// is not doubled, and may hold tabs and line ends; a quote elsewhere is a character. Lines end in LF, CR LF or CR; empty ones are skipped.
///
/// Errors: DataError beginning with `where` and the line, for a field longer than `max_field_bytes` or a quote that is never closed.
/// Source: pandas' and Python's csv readers, which the published loaders use (arXiv:2310.02980 and its code).
class TsvReader {
 public:
  TsvReader(std::string where, int64_t max_field_bytes, TsvVisitor visit);
  void feed(std::string_view bytes);
  void finish();  ///< a last line need not end in a line end

 private:
  enum class State { kFieldBegin, kPlain, kQuoted, kQuoteInQuoted };
  void take(char c);
  void append(std::string_view bytes);
  void end_field();
  void end_line();
  std::string where_;
  size_t max_field_bytes_;
  TsvVisitor visit_;
  State state_ = State::kFieldBegin;
  std::string field_;
  std::vector<std::string> fields_;
  int64_t line_ = 1, row_line_ = 1, quote_line_ = 1;
  bool after_return_ = false;  // a line feed that follows belongs to the same line end
};

}  // namespace spt::formats
