#include "tasks/formats/pathfinder_files.h"

#include <algorithm>
#include <charconv>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/png.h"

namespace spt::formats {
namespace {

constexpr int64_t kMostMetadataBytes = int64_t{256} << 20;

std::vector<std::string_view> white_space_fields(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\f\v";
  std::vector<std::string_view> fields;
  for (size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos; at = line.find_first_not_of(kSpace, at)) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

/// Below the folder that it is joined to, whatever the metadata say.
void check_stays_inside(std::string_view path, const std::string& where) {
  const std::filesystem::path p(path);
  const bool leaves = std::any_of(p.begin(), p.end(), [](const auto& part) { return part == ".."; });
  if (p.is_absolute() || leaves) throw DataError("{}: '{}' leads out of the data folder", where, path.substr(0, 80));
}

uint8_t sample_label(std::string_view text, const std::string& where) {
  if (text != "0" && text != "1") throw DataError("{}: the label is '{}'; allowed: 0, 1", where, text.substr(0, 40));
  return text == "1" ? 1 : 0;
}

PathfinderSample sample_of_line(std::string_view line, std::string_view level, const std::string& where) {
  const std::vector<std::string_view> fields = white_space_fields(line);
  if (fields.size() < 4) throw DataError("{}: {} fields; at least 4 are needed: folder, file, index, label", where, fields.size());
  const std::string path = fmt::format("{}/{}", fields[0], fields[1]);
  check_stays_inside(path, where);
  return {.file = fmt::format("{}/{}", level, path), .label = sample_label(fields[3], where)};
}

void add_samples(std::vector<PathfinderSample>& samples, std::string_view text, std::string_view level, const std::string& where) {
  if (text.starts_with("\x93NUMPY"))
    throw DataError("{}: numpy's binary format; Long Range Arena's metadata are text: `folder file index label ...` a line", where);
  int64_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    samples.push_back(sample_of_line(text.substr(at, end - at), level, fmt::format("{}, line {}", where, number)));
    at = end + 1;
  }
}

int64_t metadata_number(const std::string& name, std::string_view where) {
  const std::string stem = std::filesystem::path(name).stem().string();
  int64_t number = -1;
  const auto [end, problem] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  if (problem != std::errc() || end != stem.data() + stem.size() || number < 0)
    throw DataError("{}: the name of '{}' is no number", where, name);
  return number;
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& folder) {
  std::map<std::string, std::string> metadata;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".npy") continue;
    if (static_cast<int64_t>(entry.file_size()) > kMostMetadataBytes)
      throw DataError("'{}': {} bytes are too many for metadata", entry.path().string(), entry.file_size());
    metadata[entry.path().filename().string()] = read_file(entry.path());
  }
  if (metadata.empty()) throw DataError("'{}': no metadata (<number>.npy) in it", folder.string());
  return metadata;
}

}  // namespace

const std::vector<PathfinderSet>& pathfinder_sets() {
  static const std::vector<PathfinderSet> kSets = {
      {"pathfinder32", 32, "pathfinder32"}, {"pathx", 128, "pathfinder128"}, {"pathx256", 256, "pathfinder256"}};
  return kSets;
}

const PathfinderSet* find_pathfinder_set(std::string_view task) {
  for (const PathfinderSet& set : pathfinder_sets())
    if (set.task == task) return &set;
  return nullptr;
}

std::vector<PathfinderSample> pathfinder_samples(const std::map<std::string, std::string>& metadata, std::string_view level,
                                                 std::string_view where) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, text] : metadata) order.emplace_back(metadata_number(name, where), name);
  std::sort(order.begin(), order.end());
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1].first == order[i].first)
      throw DataError("{}: '{}' and '{}' have one number", where, order[i - 1].second, order[i].second);
  std::vector<PathfinderSample> samples;
  for (const auto& [number, name] : order) add_samples(samples, metadata.at(name), level, fmt::format("{}: {}", where, name));
  return samples;
}

std::filesystem::path pathfinder_folder(const PathfinderSet& set, const std::filesystem::path& data_root) {
  return data_root / "pathfinder" / set.folder;
}

std::optional<std::filesystem::path> find_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root) {
  for (const auto& above : {data_root / "pathfinder", data_root, data_root / "lra_release", data_root / "lra_release" / "lra_release"})
    if (std::filesystem::is_directory(above / set.folder / kPathfinderLevel / "metadata")) return above / set.folder;
  return std::nullopt;
}

PathfinderIndex read_pathfinder_index(const std::filesystem::path& folder, int64_t side) {
  const std::filesystem::path metadata_folder = folder / kPathfinderLevel / "metadata";
  if (!std::filesystem::is_directory(metadata_folder)) throw DataError("there is no '{}'", metadata_folder.string());
  const auto metadata = read_metadata(metadata_folder);
  PathfinderIndex index{.folder = folder,
                        .side = side,
                        .samples = pathfinder_samples(metadata, kPathfinderLevel, fmt::format("'{}'", metadata_folder.string())),
                        .data_hash = {}};
  if (index.samples.empty()) throw DataError("'{}': the metadata name no image", metadata_folder.string());
  Sha256 hash;
  for (const PathfinderSample& sample : index.samples) {
    std::error_code problem;
    const auto bytes = std::filesystem::file_size(folder / sample.file, problem);
    if (problem)
      throw DataError("'{}': its metadata name '{}', which cannot be read: {}", metadata_folder.string(), sample.file, problem.message());
    if (bytes == 0) throw DataError("'{}': an empty file, no PNG", (folder / sample.file).string());
    hash.update(fmt::format("{} {} {}\n", sample.file, sample.label, bytes));
  }
  index.data_hash = hash.hex();
  return index;
}

std::vector<uint8_t> read_pathfinder_image(const PathfinderIndex& index, int64_t i) {
  const std::filesystem::path file = index.folder / index.samples[i].file;
  Picture picture = read_grey_png(file, index.side);
  if (picture.height != index.side || picture.width != index.side)
    throw DataError("'{}': {} x {} pixels, expected {} x {}", file.string(), picture.height, picture.width, index.side, index.side);
  return std::move(picture.pixels);
}

}  // namespace spt::formats
