#include "reports/table.h"

#include "harness/base/error.h"

namespace spt::reports {

void Table::add_row(std::vector<std::string> cells) {
  SPT_CHECK(cells.size() == columns.size(), "{} cells in a table of {} columns", cells.size(), columns.size());
  rows.push_back(std::move(cells));
}

}  // namespace spt::reports
