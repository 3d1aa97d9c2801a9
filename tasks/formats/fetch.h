#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tasks/formats/manifest.h"

namespace spt::formats {

struct FetchOptions {
  std::string from;  ///< a URL that download names are added to, or a folder with the downloads or the files; "": the manifest's mirrors
  std::function<void(const std::string&)> report;  ///< one line for people; may be empty
};

/// Brings every official file of a task below the data root (the manifest's first folder), verified; a file that is there and right is left
/// alone, one that is there and different is an error, never overwritten.
///
/// Errors: DataError that lists each place tried with its reason, and what else can be done.
void fetch(const Manifest& manifest, const std::filesystem::path& data_root, const FetchOptions& options);

}  // namespace spt::formats
