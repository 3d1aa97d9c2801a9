#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/record.h"

namespace spt::reports {

/// Per task: why its rows must not stand in one table (device kinds or LibTorch minor versions differ); empty where they may.
std::vector<std::string> mixed_stamps(std::span<const results::ResultRow> rows);

/// Differences that are only told, with counts of jobs: device model, CPU capability, build, threads, LibTorch patch version.
std::vector<std::string> stamp_differences(std::span<const results::ResultRow> rows);

/// "2.13.0+cpu" -> "2.13".
std::string libtorch_minor(const std::string& version);

/// Device kinds of rows that are done, sorted.
std::vector<std::string> device_kinds(std::span<const results::ResultRow> rows);

}  // namespace spt::reports
