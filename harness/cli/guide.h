#pragma once

#include <string>

#include "harness/catalog.h"

namespace spt::cli {

/// docs/architectures.md, docs/tasks.md: what is registered, as Markdown. `scripts/make-guides` writes the files; a test compares them.
std::string architectures_guide(const Catalog& catalog);
std::string tasks_guide(const Catalog& catalog);

/// "at least 1, positions", "one of a, b"; "" where everything goes.
std::string range_text(const OptionInfo& info);
/// "n_layers = 2, d_model = 64".
std::string options_text(const OptionMap& options);

}  // namespace spt::cli
