#pragma once

#include <string>

#include "reports/table.h"

namespace spt::reports {

/// One page that stands alone: styles and figures inside, no script, nothing fetched; light and dark by the reader's setting, printable.
/// Every text is escaped; only Figure::svg is inserted as it is.
std::string render_html(const Page& page);

}  // namespace spt::reports
