#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace spt::formats {

/// Data of a task that are no short list of fixed files (manifest.h): a folder or an archive of many, with what is known about the official
/// set.
struct TreeData {
  std::string task;
  std::string title;
  std::string source;  ///< authors, page
  std::string licence;
  std::string size;      ///< of the official set: files or examples, and bytes
  std::string checksum;  ///< of the official download; "" where none is known
  std::function<std::optional<std::filesystem::path>(const std::filesystem::path& root)> find;
  std::function<std::string(const std::filesystem::path& root)> how_to_get;

  struct Verdict {
    bool official = false;
    std::string summary;  ///< what is there
    std::string data_hash;
  };
  /// Reads all of it. Errors: DataError for damaged data.
  std::function<Verdict(const std::filesystem::path& root)> verify;
};

}  // namespace spt::formats
