#pragma once

#include <string>

#include "reports/table.h"

namespace spt::reports {

/// RFC 4180: header and rows, CRLF, a field quoted where it holds a comma, quote or line break. Title and footnotes are left out.
std::string render_csv(const Table& table);

/// The shortest text that reads back as the same number; "" for NaN.
std::string csv_number(double value);

}  // namespace spt::reports
