#include "tasks/formats/tsv.h"

#include <algorithm>

#include "harness/base/error.h"

namespace spt::formats {

TsvReader::TsvReader(std::string where, int64_t max_field_bytes, TsvVisitor visit)
    : where_(std::move(where)), max_field_bytes_(static_cast<size_t>(max_field_bytes)), visit_(std::move(visit)) {}

void TsvReader::append(std::string_view bytes) {
  if (bytes.size() > max_field_bytes_ - field_.size())
    throw DataError("{}, line {}: a field has more than {} bytes{}", where_, row_line_, max_field_bytes_,
                    state_ == State::kQuoted ? fmt::format("; the quote that begins it in line {} may never be closed", quote_line_) : "");
  field_ += bytes;
}

void TsvReader::end_field() {
  fields_.push_back(std::move(field_));
  field_.clear();
  state_ = State::kFieldBegin;
}

void TsvReader::end_line() {
  const bool empty = fields_.empty() && field_.empty() && state_ == State::kFieldBegin;
  end_field();
  if (!empty) visit_(row_line_, fields_);
  fields_.clear();
}

void TsvReader::take(char c) {
  if (state_ == State::kQuoteInQuoted && c != '"') state_ = State::kPlain;
  if (state_ == State::kQuoteInQuoted) {
    append("\"");
    state_ = State::kQuoted;
  } else if (c == '"' && state_ == State::kQuoted) {
    state_ = State::kQuoteInQuoted;
  } else if (c == '"' && state_ == State::kFieldBegin) {
    state_ = State::kQuoted;
    quote_line_ = line_;
  } else if (c == '\t' && state_ != State::kQuoted) {
    end_field();
  } else if ((c == '\n' || c == '\r') && state_ != State::kQuoted) {
    end_line();
  } else {
    append({&c, 1});
    if (state_ == State::kFieldBegin) state_ = State::kPlain;
  }
}

void TsvReader::feed(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const char c = bytes[at];
    const bool rest_of_line_end = after_return_ && c == '\n' && state_ != State::kQuoted;
    if (!after_return_ || c != '\n') line_ += c == '\n' || c == '\r';
    after_return_ = c == '\r';
    if (fields_.empty() && field_.empty() && state_ == State::kFieldBegin && c != '\n' && c != '\r') row_line_ = line_;
    if (!rest_of_line_end) take(c);
    ++at;
    // Runs of ordinary characters, which are nearly all of a text.
    if (state_ == State::kPlain || state_ == State::kQuoted) {
      const size_t end = std::min(bytes.find_first_of("\t\n\r\"", at), bytes.size());
      if (end > at) {
        append(bytes.substr(at, end - at));
        after_return_ = false;
      }
      at = end;
    }
  }
}

void TsvReader::finish() {
  if (state_ == State::kQuoted) throw DataError("{}, line {}: the quote that begins a field is never closed", where_, quote_line_);
  if (!fields_.empty() || !field_.empty() || state_ != State::kFieldBegin) end_line();
}

}  // namespace spt::formats
