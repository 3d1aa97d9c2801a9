#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace spt::tasks {

/// Train, validation, test, in the order of Split.
using SplitSizes = std::array<int64_t, 3>;

/// What train_examples, validation_examples and test_examples ask of the examples that are `there`; 0 asks for all.
/// Errors: Error naming `where` and the option that asks for more.
SplitSizes examples_asked(const SplitSizes& asked, const SplitSizes& there, const std::string& where);

}  // namespace spt::tasks
