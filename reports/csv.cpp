#include "reports/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace spt::reports {
namespace {

void append_csv_field(std::string& out, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  for (char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

std::string render_csv(const Table& table) {
  std::string out;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) out += ',';
    append_csv_field(out, table.columns[c].header);
  }
  out += "\r\n";
  for (const auto& cells : table.rows) {
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) out += ',';
      append_csv_field(out, cells[c]);
    }
    out += "\r\n";
  }
  return out;
}

std::string csv_number(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

}  // namespace spt::reports
