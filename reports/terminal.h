#pragma once

#include <string>

#include "reports/table.h"

namespace spt::reports {

/// Aligned columns for a terminal of UTF-8; a cell of several lines takes several lines. No colour, no escape sequence.
std::string render_terminal(const Table& table);

/// Facts, notices and tables; figures are left to the files. A footnote that an earlier table had is not repeated.
std::string render_terminal(const Page& page);

}  // namespace spt::reports
