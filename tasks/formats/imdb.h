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

/// One review of the Large Movie Review Dataset. Its name there: SPLIT/{neg,pos}/ID_RATING.txt.
struct Review {
  int64_t label = 0;  ///< 0 negative, 1 positive
  int64_t id = 0;
  int64_t rating = 0;  ///< 1..4 negative, 7..10 positive
  std::string text;    ///< raw bytes: UTF-8, HTML kept
  bool operator==(const Review&) const = default;
};

/// The labelled reviews, each split in order of (label, id): the same from a folder, an archive and the cache.
struct ImdbData {
  std::vector<Review> train;
  std::vector<Review> test;
  std::string data_hash;  ///< SHA-256 of the lines "<SHA-256 of a review> SPLIT/CLASS/ID_RATING.txt\n" in order of the names
};

inline constexpr std::string_view kImdbOfficialHash = "2944cc6835b5ffedf34ebe50bf722b4e3d7a39d506e949f47e7d9b7b4c25e3a7";

/// "train/pos/7_10.txt".
std::string review_name(std::string_view split, const Review& review);

/// Reads an unpacked aclImdb folder, which holds {train,test}/{pos,neg}/ID_RATING.txt; other folders and lists are not looked at.
///
/// Errors: DataError naming the folder or file for a part that is missing or empty, a file with another kind of name, a rating that does
/// not fit its class, an id that stands twice.
ImdbData read_imdb_folder(const std::filesystem::path& folder);

/// ... from its archive (.tar, .tar.gz, .tar.xz ...), without unpacking it. Errors: as read_imdb_folder(), and for a damaged archive.
ImdbData read_imdb_archive(const std::filesystem::path& archive);

/// The data below a data root: imdb/aclImdb or aclImdb, else an archive there or in imdb/. Nothing if there is none.
std::optional<std::filesystem::path> find_imdb(const std::filesystem::path& data_root);

/// What to do when there is none: a sentence that names the places.
std::string how_to_get_imdb(const std::filesystem::path& data_root);

/// What `spt-bench data` says about text.
TreeData imdb_tree();

/// What find_imdb() finds; an archive's content is kept in `<data root>/cache/`, because decompressing it takes seconds.
///
/// The cache is keyed by the archive's SHA-256, written atomically, checked against a SHA-256 of its own, and made again if it is damaged.
/// A data root that cannot be written is no error: then the archive is read each time.
/// Errors: DataError that says where the data are looked for and how to get them; those of the readers.
ImdbData load_imdb(const std::filesystem::path& data_root);

/// File of the cache for an archive with this SHA-256.
std::filesystem::path imdb_cache_file(const std::filesystem::path& data_root, std::string_view archive_sha256);

}  // namespace spt::formats
