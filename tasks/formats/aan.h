#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/tree_data.h"

namespace spt::formats {

/// Two papers: does the first cite the second? `first` and `second` count AanData::texts.
struct AanPair {
  int64_t label = 0;
  int64_t first = 0;
  int64_t second = 0;
  bool operator==(const AanPair&) const = default;
};

/// Pairs of papers of the ACL Anthology Network. A paper stands in many pairs; each distinct text is kept once, in the order of first use.
struct AanData {
  std::vector<std::string> texts;             ///< UTF-8
  std::array<std::vector<AanPair>, 3> pairs;  ///< train, validation, test
  std::string data_hash;                      ///< SHA-256 over "<sha256> <name>\n" of the files, in order of name
};

/// How many pairs Long Range Arena's files have: train, eval, test.
inline constexpr std::array<int64_t, 3> kAanOfficialPairs = {147'086, 18'090, 17'437};
/// data_hash of the stand-in in the project's data folder: 978 papers, 1,832 + 228 + 228 pairs.
inline constexpr std::string_view kScisummnetHash = "751dd15a2f7696e7a73fc6d4e8991a39cda4f4fc3573860ac4c49c0e084e9ee3";

/// Reads `new_aan_pairs.{train,eval,test}.tsv`: no header; label (0, 1, 0.0 or 1.0), two ids, two texts; csv quoting (tsv.h).
///
/// Errors: DataError naming file and line: a file is missing, empty or truncated, another number of columns, another label, text that is
/// not UTF-8, a field of more than 64 MiB.
AanData read_aan_tsv(const std::filesystem::path& folder);

/// Reads the stand-in, an archive or an unpacked folder: `papers/ID.txt` and `pairs.{train,eval,test}.tsv` with label, id, id.
///
/// Errors: DataError naming file and line, also for an id without a paper and for a paper that stands twice.
AanData read_scisummnet(const std::filesystem::path& archive_or_folder);

/// The folder with Long Range Arena's files: <root>/aan, <root>/retrieval or where lra_release.gz unpacks them.
std::optional<std::filesystem::path> find_aan_tsv(const std::filesystem::path& data_root);
/// <root>/{aan,retrieval}/aan_scisummnet, or the archive of that name.
std::optional<std::filesystem::path> find_scisummnet(const std::filesystem::path& data_root);

/// What `spt-bench data` says about retrieval.
TreeData aan_tree();

}  // namespace spt::formats
