#pragma once

#include <CLI/CLI.hpp>

namespace spt::cli {

// What a flag's text must be; CLI11's own checks let NaN pass and print limits of 300 digits.

/// A finite number of at least 0.
CLI::Validator not_negative();
/// A finite number above 0.
CLI::Validator positive();
/// A path of at least one character; an empty variable in a script is a mistake, not the current folder.
CLI::Validator path_given();

}  // namespace spt::cli
