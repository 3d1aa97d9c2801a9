#include "tasks/formats/fetch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/archive.h"
#include "tasks/formats/compressed.h"
#include "tasks/formats/download.h"

namespace spt::formats {
namespace {

const OfficialFile& official_file(const Manifest& manifest, const std::string& name) {
  const auto found = std::find_if(manifest.files.begin(), manifest.files.end(), [&](const OfficialFile& f) { return f.name == name; });
  SPT_CHECK(found != manifest.files.end(), "'{}' is not in the manifest of {}", name, manifest.task);
  return *found;
}

/// A file as it is stored (perhaps packed) goes to `target` if its content is the official one.
void place_file(const std::filesystem::path& source, const std::filesystem::path& target, const OfficialFile& official) {
  const std::string found = sha256(read_unpacked(source, official.bytes));
  if (found != official.sha256)
    throw DataError("'{}': other content than published: SHA-256 {} instead of {}", source.string(), found, official.sha256);
  write_file_atomically(target, read_file(source));
}

/// Writes those members of a tar archive whose base names are wanted, each verified.
void unpack_archive(const std::filesystem::path& file, const std::filesystem::path& folder, const Manifest& manifest,
                    std::set<std::string> wanted) {
  constexpr ArchiveLimits kLimits = {.file_bytes = int64_t{1} << 28, .total_bytes = int64_t{1} << 31};
  visit_archive(file, kLimits, [&](std::string_view path, const std::function<std::string()>& read) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (!wanted.contains(name)) return;
    const std::string content = read();
    if (sha256(content) != official_file(manifest, name).sha256)
      throw DataError("'{}': its member {} is not the published file", file.string(), name);
    write_file_atomically(folder / name, content);
    wanted.erase(name);
  });
  if (!wanted.empty()) throw DataError("'{}': lacks {}", file.string(), fmt::join(wanted, ", "));
}

/// One fetch: what is missing, and from where.
class Fetcher {
 public:
  Fetcher(const Manifest& manifest, const std::filesystem::path& data_root, const FetchOptions& options)
      : manifest_(manifest), folder_(data_root / manifest.folders.front()), options_(options) {}

  void run() {
    std::filesystem::create_directories(folder_);
    find_missing();
    if (missing_.empty()) return report(fmt::format("{}: all files are in {}", manifest_.task, folder_.string()));
    for (const Download& download : manifest_.downloads) {
      if (std::none_of(download.gives.begin(), download.gives.end(), [&](const std::string& name) { return missing_.contains(name); }))
        continue;
      get(download);
    }
    SPT_CHECK(missing_.empty(), "no download of {} gives {}", manifest_.task, fmt::join(missing_, ", "));
    report(fmt::format("{}: complete and verified in {}", manifest_.task, folder_.string()));
  }

 private:
  void find_missing() {
    for (const OfficialFile& official : manifest_.files) {
      const auto file = find_packed(folder_, official.name);
      if (!file) {
        missing_.insert(official.name);
      } else if (const std::string found = sha256(read_unpacked(*file, int64_t{1} << 32)); found != official.sha256) {
        throw DataError("'{}' is there but is not the published file (SHA-256 {} instead of {}); move it away and fetch again",
                        file->string(), found, official.sha256);
      }
    }
  }

  /// From the first place that has it.
  void get(const Download& download) {
    std::vector<std::string> failures;
    const std::vector<std::string> places = options_.from.empty() ? manifest_.mirrors : std::vector<std::string>{options_.from};
    for (const std::string& place : places) {
      try {
        if (place.find("://") == std::string::npos) {
          from_folder(place, download);
        } else {
          from_url(place.ends_with('/') ? place : place + "/", download);
        }
        return;
      } catch (const DataError& e) {  // one place failed: the next is tried, and all reasons are given at the end
        failures.push_back(e.what());
      }
    }
    const std::string package = manifest_.package.empty() ? "" : fmt::format(", or install the package {}", manifest_.package);
    throw DataError("{}: could not get {}:\n  {}\nWithout a network: bring {} from elsewhere and give `--mirror FOLDER`{}", manifest_.task,
                    download.name, fmt::join(failures, "\n  "), download.name, package);
  }

  void from_folder(const std::filesystem::path& place, const Download& download) {
    if (std::filesystem::is_regular_file(place / download.name)) return accept(place / download.name, download, false);
    for (const std::string& name : download.gives) {
      if (!missing_.contains(name)) continue;
      const auto file = find_packed(place, name);
      if (!file) throw DataError("'{}': neither {} nor {}", place.string(), download.name, name);
      place_file(*file, folder_ / file->filename(), official_file(manifest_, name));
      missing_.erase(name);
      report(fmt::format("{}: {} from {}", manifest_.task, name, place.string()));
    }
  }

  void from_url(const std::string& place, const Download& download) {
    report(fmt::format("{}: {}{}", manifest_.task, place, download.name));
    const std::filesystem::path file = folder_ / (download.name + ".download");
    formats::download(place + download.name, file, download.bytes, download.sha256);
    accept(file, download, true);
  }

  /// Takes the official files out of a download; `ours` is deleted afterwards, good or bad.
  void accept(const std::filesystem::path& file, const Download& download, bool ours) {
    struct Cleaner {
      std::filesystem::path file;
      ~Cleaner() {
        std::error_code ignored;
        if (!file.empty()) std::filesystem::remove(file, ignored);
      }
    };
    const Cleaner cleaner{ours ? file : std::filesystem::path()};
    if (download.gives.size() == 1) {
      const OfficialFile& official = official_file(manifest_, download.gives.front());
      const std::string packed = read_file(file);
      const std::string content =
          download.name.ends_with(".gz") ? unpack_gzip(packed, official.bytes, fmt::format("'{}'", download.name)) : packed;
      const std::string found = sha256(content);
      if (found != official.sha256)
        throw DataError("{}: other content than published: SHA-256 {} instead of {}", download.name, found, official.sha256);
      write_file_atomically(folder_ / download.name, packed);
    } else {
      std::set<std::string> wanted;
      for (const std::string& name : download.gives)
        if (missing_.contains(name)) wanted.insert(name);
      unpack_archive(file, folder_, manifest_, wanted);
    }
    for (const std::string& name : download.gives) missing_.erase(name);
  }

  void report(const std::string& line) const {
    if (options_.report) options_.report(line);
  }

  const Manifest& manifest_;
  std::filesystem::path folder_;
  const FetchOptions& options_;
  std::set<std::string> missing_;
};

}  // namespace

void fetch(const Manifest& manifest, const std::filesystem::path& data_root, const FetchOptions& options) {
  Fetcher(manifest, data_root, options).run();
}

}  // namespace spt::formats
