#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// One official file as it counts: unpacked, because mirrors pack the same content in different ways.
struct OfficialFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;
};

/// Something to download, and the official files in it.
struct Download {
  std::string name;                ///< file name at every mirror
  int64_t bytes = 0;               ///< 0: mirrors differ
  std::string sha256;              ///< of the download itself; "": mirrors differ, the content is checked
  std::vector<std::string> gives;  ///< names of official files
};

/// The official data of one task.
struct Manifest {
  std::string task;
  std::string title;
  std::string source;  ///< authors, page
  std::string licence;
  std::vector<std::string> folders;  ///< below the data root, in the order they are looked into; the first is where `data fetch` writes
  std::vector<std::filesystem::path> system_folders;  ///< where a distribution package puts them; looked into last
  std::string package;                                ///< distribution package with the data; "": none
  std::vector<OfficialFile> files;
  std::vector<Download> downloads;
  std::vector<std::string> mirrors;  ///< URLs ending in / that a download's name is added to, the authors' own first
};

/// Sorted by task. Fixed data files only: tasks that are generated or read from a tree of files are not in it.
const std::vector<Manifest>& manifests();
const Manifest& manifest(std::string_view task);  ///< Errors: Error with the known tasks

/// What a file is, whatever it is called on disk: official name and SHA-256 of its unpacked content.
struct FileIdentity {
  std::string name;
  std::string sha256;
  int64_t bytes = 0;  ///< unpacked; not part of the data hash
  bool operator==(const FileIdentity&) const = default;
};

/// The data hash: SHA-256 over the lines "<sha256> <name>\n" in order of name.
std::string data_hash(std::vector<FileIdentity> files);
std::vector<FileIdentity> official_files(const Manifest& manifest);
std::string official_hash(const Manifest& manifest);

/// The folder of a task's data: the first, of the manifest's folders below the root and then the system's, that holds one of the official
/// names, plain, .gz or .xz. A folder is never mixed with another.
std::optional<std::filesystem::path> data_folder(const Manifest& manifest, const std::filesystem::path& data_root);

enum class FileState { kOfficial, kDifferent, kMissing };

struct FileCheck {
  std::string name;
  FileState state = FileState::kMissing;
  std::filesystem::path path;  ///< empty if missing
  std::string sha256;          ///< of the unpacked content; "" if missing or damaged
  int64_t bytes = 0;           ///< unpacked
  std::string problem;         ///< why a file that is there cannot be read; "" otherwise
};

/// What there is of a task's data.
struct Verification {
  std::filesystem::path folder;  ///< empty if there is none
  std::vector<FileCheck> files;  ///< as in the manifest
  bool official() const;         ///< every file there and as published
  bool any() const;
  std::vector<FileIdentity> present() const;  ///< the files that are there and whole
  std::string data_hash() const;              ///< over present()
};

/// Reads and hashes every file. Damaged files are reported, not thrown.
Verification verify(const Manifest& manifest, const std::filesystem::path& data_root);

/// The record `<data root>/<task>/verified.json` of a partial or different set: what a matrix with `partial = true` is planned with.
struct VerifiedRecord {
  std::string data_hash;
  std::vector<FileIdentity> files;  ///< those there are
  bool official = false;
};

std::filesystem::path verified_record_file(const Manifest& manifest, const std::filesystem::path& data_root);
void write_verified_record(const Manifest& manifest, const std::filesystem::path& data_root, const Verification& verification);
/// Nothing if there is no record. Errors: DataError naming the file if it is damaged or its hash is not that of its files.
std::optional<VerifiedRecord> read_verified_record(const Manifest& manifest, const std::filesystem::path& data_root);

/// What a partial set is: the record, or where there is none, what verify() finds now (remembered by the process until a file changes).
/// Errors: DataError if there are no files.
VerifiedRecord local_data(const Manifest& manifest, const std::filesystem::path& data_root);

}  // namespace spt::formats
