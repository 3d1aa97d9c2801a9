#pragma once

#include <string>

#include "reports/table.h"

namespace spt::reports {

/// GitHub's Markdown: everything a label could contain is escaped (HTML, pipes, emphasis, links); a line break is <br>.
std::string render_markdown(const Table& table);

/// Figures are linked as "<name>.svg" beside the file.
std::string render_markdown(const Page& page);

}  // namespace spt::reports
