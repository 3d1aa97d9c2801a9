#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>

namespace spt {

/// Sends spdlog's default logger to `file` (appended, flushed at each line) instead of the terminal. Errors: Error if it cannot be opened.
void log_to_file(const std::filesystem::path& file);

}  // namespace spt
