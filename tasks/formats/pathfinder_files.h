#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// The three Pathfinder tasks and the folders of Long Range Arena's release that they are read from.
struct PathfinderSet {
  std::string task;  ///< pathfinder32 | pathx | pathx256
  int64_t side = 0;
  std::string folder;  ///< pathfinder32 | pathfinder128 | pathfinder256
};
const std::vector<PathfinderSet>& pathfinder_sets();              ///< sorted by task
const PathfinderSet* find_pathfinder_set(std::string_view task);  ///< nullptr for another task

inline constexpr int64_t kPathfinderImages = 200'000;                           ///< of the official set
inline constexpr std::string_view kPathfinderLevel = "curv_contour_length_14";  ///< the only level that is used

/// One line of the metadata.
struct PathfinderSample {
  std::string file;  ///< below the set's folder: curv_contour_length_14/imgs/<batch>/sample_<n>.png
  uint8_t label = 0;
};

/// Samples of metadata files (name -> text) in the published order: files by the integer in their name, then by line. The files are text in
/// spite of their suffix: fields 0 (folder), 1 (file) and 3 (label) of each line.
///
/// Errors: DataError beginning with `where` and naming file and line: too few fields, a label that is not 0 or 1, a path that leaves the
/// folder, numpy's binary format, a name that is no integer.
std::vector<PathfinderSample> pathfinder_samples(const std::map<std::string, std::string>& metadata, std::string_view level,
                                                 std::string_view where);

/// What is in a folder of the official layout.
struct PathfinderIndex {
  std::filesystem::path folder;
  int64_t side = 0;
  std::vector<PathfinderSample> samples;
  std::string data_hash;  ///< of names, labels and sizes of the images: opening a set does not read 200,000 files
};

/// Where a set is: DATA/pathfinder/<folder>, DATA/<folder>, or DATA/lra_release/<folder> (also with lra_release twice, as the archive has
/// it).
std::optional<std::filesystem::path> find_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root);
std::filesystem::path pathfinder_folder(const PathfinderSet& set, const std::filesystem::path& data_root);  ///< where `data make` writes

/// Reads the metadata and looks at every image file.
/// Errors: DataError as pathfinder_samples(), and for an image that is missing or empty, with the line that names it.
PathfinderIndex read_pathfinder_index(const std::filesystem::path& folder, int64_t side);

/// Pixels of one sample. Errors: DataError for a damaged file or another size than side x side.
std::vector<uint8_t> read_pathfinder_image(const PathfinderIndex& index, int64_t i);

using PathfinderSay = std::function<void(const std::string&)>;  ///< takes a line for people

/// What `spt-bench data list` and `verify` say; true if all images are there and whole.
void list_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root, const PathfinderSay& say);
bool verify_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root, const PathfinderSay& say);

/// In a set that we made: the generator that it is of. A set is never finished by another one.
inline constexpr const char* kPathfinderIdentityFile = "generated.txt";

struct PathfinderMake {
  int64_t count = kPathfinderImages;
  int64_t seed = 0;
  int64_t threads = 1;
  int64_t batch = 1000;  ///< images a folder
};

/// Generates a set in the official layout, batch by batch: a batch's images stand in a folder that gets its name when it is whole, then its
/// metadata file appears. A second call goes on where the first was stopped.
///
/// Errors: Error for a folder that holds other data (another generator, seed, or none of ours), or cannot be written.
void make_pathfinder_files(const PathfinderSet& set, const PathfinderMake& make, const std::filesystem::path& data_root,
                           const PathfinderSay& say);

}  // namespace spt::formats
