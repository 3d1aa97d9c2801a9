#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/base/file.h"

namespace spt::golden {

/// Compares a text with tests/golden/<name>.approved.txt. The received text is left below the build folder, where scripts/approve-goldens
/// finds it; the caller blanks what changes from run to run (durations, dates, host, commit).
inline ::testing::AssertionResult is_approved(const std::string& name, const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path approved = fs::path(SPT_TEST_DATA).parent_path() / "golden" / (name + ".approved.txt");
  const fs::path received = fs::path(SPT_BINARY_DIR).parent_path() / "tests" / "received" / (name + ".received.txt");
  fs::create_directories(received.parent_path());
  write_file_atomically(received, text);
  const std::string expected = fs::exists(approved) ? read_file(approved) : "";
  if (text == expected) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << name << " differs from what was approved.\n  diff -u " << approved.string() << " "
                                       << received.string() << "\nIf the new text is right: scripts/approve-goldens " << name;
}

}  // namespace spt::golden
