#include <charconv>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/mapped_file.h"
#include "tasks/formats/npy.h"

namespace spt::formats {
namespace {

float ts_number(std::string_view text, const std::string& where) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  float value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw DataError("{}: '{}' is no number", where, text.substr(0, 40));
  return value;
}

/// One line: PPG values : ECG values : target.
void add_ts_line(std::string_view line, BidmcTable& table, const std::string& where) {
  const size_t first = line.find(':'), second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos || line.find(':', second + 1) != std::string_view::npos)
    throw DataError("{}: not two dimensions and a target with ':' between", where);
  const std::array<std::string_view, 2> dimensions = {line.substr(0, first), line.substr(first + 1, second - first - 1)};
  const size_t base = table.x.size();
  table.x.resize(base + static_cast<size_t>(kBidmcWindow * kBidmcChannels));
  for (size_t c = 0; c < dimensions.size(); ++c) {
    int64_t n = 0;
    for (size_t at = 0; at <= dimensions[c].size(); ++n) {
      const size_t comma = std::min(dimensions[c].find(',', at), dimensions[c].size());
      const float value = ts_number(dimensions[c].substr(at, comma - at), where);
      if (n < kBidmcWindow) table.x[base + static_cast<size_t>(n * kBidmcChannels) + c] = value;
      at = comma + 1;
    }
    if (n != kBidmcWindow) throw DataError("{}: dimension {} has {} values instead of {}", where, c + 1, n, kBidmcWindow);
  }
  table.y.push_back(ts_number(line.substr(second + 1), where));
}

BidmcTable read_npy_pair(const std::filesystem::path& folder, const std::string& split, std::map<std::string, std::string>& digests) {
  BidmcTable table;
  for (const char* part : {"x", "y"}) {
    const std::filesystem::path file = folder / (split + part + ".npy");
    NpyArray array = read_npy(file);
    digests[file.filename().string()] = sha256_file(file);
    const bool inputs = part == std::string_view("x");
    const std::vector<int64_t> rest(array.shape.begin() + std::min<size_t>(1, array.shape.size()), array.shape.end());
    const bool fits =
        inputs ? rest == std::vector<int64_t>{kBidmcWindow, kBidmcChannels} : array.shape.size() == 1 || rest == std::vector<int64_t>{1};
    if (array.shape.empty() || !fits) throw DataError("'{}': its shape is not {}", file.string(), inputs ? "(n, 4000, 2)" : "(n)");
    (inputs ? table.x : table.y) = std::move(array.values);
  }
  for (const std::vector<float>* values : {&table.x, &table.y})
    for (const float value : *values)
      if (!std::isfinite(value)) throw DataError("'{}': {} has a value that is no number", folder.string(), split);
  const auto windows = static_cast<int64_t>(table.x.size()) / (kBidmcWindow * kBidmcChannels);
  if (windows != table.size() || windows == 0)
    throw DataError("'{}': {} has {} windows and {} targets", folder.string(), split, windows, table.y.size());
  return table;
}

std::string bidmc_table_hash(const std::map<std::string, std::string>& digests) {
  Sha256 all;
  for (const auto& [name, digest] : digests) all.update(fmt::format("{} {}\n", digest, name));
  return all.hex();
}

}  // namespace

BidmcTable parse_bidmc_ts(std::string_view text, const std::string& where) {
  constexpr size_t kLongestLine = size_t{1} << 20;
  BidmcTable table;
  bool data = false;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    const std::string place = fmt::format("{}, line {}", where, number);
    if (line.size() > kLongestLine) throw DataError("{}: {} characters, which no window has", place, line.size());
    if (line.empty() || line.starts_with('#')) continue;
    if (data) {
      add_ts_line(line, table, place);
    } else if (line == "@data") {
      data = true;
    } else if (!line.starts_with('@')) {
      throw DataError("{}: data before @data", place);
    }
  }
  if (!data) throw DataError("{}: there is no @data in it", where);
  if (table.y.empty()) throw DataError("{}: there are no windows in it", where);
  return table;
}

BidmcTables load_bidmc_tables(const std::filesystem::path& data_root, BidmcTarget target) {
  const std::string name(kBidmcFolders[static_cast<size_t>(target)]);
  const std::filesystem::path arrays = data_root / "bidmc" / name / "reshuffle";
  BidmcTables found;
  std::map<std::string, std::string> digests;
  if (std::filesystem::exists(arrays / "trainx.npy")) {
    found.is_split = true;
    constexpr std::array<const char*, 3> kParts = {"train", "valid", "test"};
    for (size_t k = 0; k < kParts.size(); ++k) found.tables[k] = read_npy_pair(arrays, kParts[k], digests);
    found.data_hash = bidmc_table_hash(digests);
    return found;
  }
  for (const std::filesystem::path& folder : {data_root / "bidmc", data_root / "bidmc" / name}) {
    if (!std::filesystem::exists(folder / fmt::format("BIDMC32{}_TRAIN.ts", name))) continue;
    for (const char* part : {"TRAIN", "TEST"}) {
      const std::filesystem::path file = folder / fmt::format("BIDMC32{}_{}.ts", name, part);
      const MappedFile mapped(file);
      digests[file.filename().string()] = sha256(mapped.bytes());
      const BidmcTable table = parse_bidmc_ts(mapped.bytes(), fmt::format("'{}'", file.string()));
      found.tables[0].x.insert(found.tables[0].x.end(), table.x.begin(), table.x.end());
      found.tables[0].y.insert(found.tables[0].y.end(), table.y.begin(), table.y.end());
    }
    found.data_hash = bidmc_table_hash(digests);
    return found;
  }
  throw DataError(
      "there are neither {0}/trainx.npy ... nor BIDMC32{1}_TRAIN.ts and BIDMC32{1}_TEST.ts in '{2}'; the .ts files are in the TSER archive "
      "BIDMC32{1} on zenodo.org; source = \"physionet\" takes the recordings themselves",
      arrays.string(), name, (data_root / "bidmc").string());
}

}  // namespace spt::formats
