#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace spt::formats {

struct ShowOptions {
  int64_t n = 8;              ///< examples
  std::filesystem::path out;  ///< file of the picture; empty: <task>.png or <task>.svg in the current folder
};

/// Shows the first n training examples of a task to a person: images as a contact sheet (PNG), signals as waveforms (SVG), both written to
/// a file; texts as lines. What is generated is shown without any data.
///
/// Errors: Error for a task that cannot be shown, with the known ones; DataError where data are absent or damaged.
void show_data(const std::filesystem::path& data_root, const std::string& task, const ShowOptions& options,
               const std::function<void(const std::string&)>& say);

}  // namespace spt::formats
