#include "tasks/formats/bidmc.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/archive.h"

namespace spt::formats {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// Rows of a csv file without quotes, cell by cell.
class CsvRows {
 public:
  CsvRows(std::string_view text, const std::string& where) : rest_(text), where_(where) {
    if (!next_line()) throw DataError("{}: empty", where_);
    columns_ = cells_;
  }
  size_t column(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end()) throw DataError("{}, line 1: there is no column '{}'", where_, name);
    return static_cast<size_t>(found - columns_.begin());
  }
  /// The next row with something in it. Errors: DataError for another number of cells than the header has.
  bool next() {
    if (!next_line()) return false;
    if (cells_.size() != columns_.size())
      throw DataError("{}, line {}: {} columns, the header has {}", where_, line_, cells_.size(), columns_.size());
    return true;
  }
  float number(size_t column, bool may_be_missing) const {
    const std::string_view cell = cells_[column];
    if (may_be_missing && (cell == "NaN" || cell.empty())) return std::numeric_limits<float>::quiet_NaN();
    float value = 0;
    const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (problem != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value))
      throw DataError("{}, line {}: '{}' in column '{}' is no number", where_, line_, cell.substr(0, 40), columns_[column]);
    return value;
  }
  int64_t line() const { return line_; }

 private:
  bool next_line() {
    constexpr size_t kLongestLine = 4096;
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (line.size() > kLongestLine)
        throw DataError("{}, line {}: {} characters, which no row of this format has", where_, line_, line.size());
      if (line.empty()) continue;
      cells_.clear();
      for (size_t at = 0; at <= line.size();) {
        const size_t comma = std::min(line.find(',', at), line.size());
        cells_.push_back(trimmed(line.substr(at, comma - at)));
        at = comma + 1;
      }
      return true;
    }
    return false;
  }
  std::string_view rest_;
  const std::string& where_;
  std::vector<std::string_view> columns_, cells_;
  int64_t line_ = 0;
};

/// NN of bidmc_NN_<kind>.csv.
std::optional<int64_t> recording_number(std::string_view name, std::string_view kind) {
  const std::string end = fmt::format("_{}.csv", kind);
  if (!name.starts_with("bidmc_") || !name.ends_with(end)) return std::nullopt;
  const std::string_view digits = name.substr(6, name.size() - 6 - end.size());
  int64_t id = 0;
  const auto [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  return problem == std::errc{} && rest == digits.data() + digits.size() ? std::optional(id) : std::nullopt;
}

class BidmcCollector {
 public:
  explicit BidmcCollector(std::string where) : where_(std::move(where)) {}
  void add(const std::string& name, const std::function<std::string()>& read) {
    const auto signals = recording_number(name, "Signals"), numerics = recording_number(name, "Numerics");
    if (!signals && !numerics) return;
    const std::string content = read(), where = fmt::format("{}: {}", where_, name);
    if (!digests_.try_emplace(name, sha256(content)).second) throw DataError("{}: stands twice", where);
    BidmcRecording& recording = recordings_[signals ? *signals : *numerics];
    if (signals) recording.signal = parse_bidmc_signals(content, where);
    else parse_bidmc_numerics(content, recording, where);
  }
  BidmcRecordings finish() {
    if (recordings_.empty()) throw DataError("{}: there is no bidmc_NN_Signals.csv in it", where_);
    BidmcRecordings data;
    for (auto& [id, recording] : recordings_) {
      recording.id = id;
      if (recording.signal.empty() || recording.seconds.empty())
        throw DataError("{}: bidmc_{:02}_{}.csv is missing", where_, id, recording.signal.empty() ? "Signals" : "Numerics");
      data.recordings.push_back(std::move(recording));
    }
    Sha256 all;
    for (const auto& [name, digest] : digests_) all.update(fmt::format("{} {}\n", digest, name));
    data.data_hash = all.hex();
    return data;
  }

 private:
  std::string where_;
  std::map<int64_t, BidmcRecording> recordings_;
  std::map<std::string, std::string> digests_;
};

}  // namespace

std::vector<float> parse_bidmc_signals(std::string_view csv, const std::string& where) {
  constexpr double kTimeTolerance = 0.0055;  // times have five digits, so that from 100 s on they are rounded to 0.01 s
  CsvRows rows(csv, where);
  const size_t time = rows.column("Time [s]"), ppg = rows.column("PLETH"), ecg = rows.column("II");
  std::vector<float> signal;
  for (int64_t i = 0; rows.next(); ++i) {
    const double expected = static_cast<double>(i) / kBidmcRate, found = rows.number(time, false);
    if (std::abs(found - expected) > kTimeTolerance)
      throw DataError("{}, line {}: time {} s; at {} Hz it would be {} s", where, rows.line(), found, kBidmcRate, expected);
    signal.push_back(rows.number(ppg, false));
    signal.push_back(rows.number(ecg, false));
  }
  if (static_cast<int64_t>(signal.size()) < kBidmcWindow * kBidmcChannels)
    throw DataError("{}: {} samples are less than a window of {}", where, signal.size() / kBidmcChannels, kBidmcWindow);
  return signal;
}

void parse_bidmc_numerics(std::string_view csv, BidmcRecording& recording, const std::string& where) {
  CsvRows rows(csv, where);
  const size_t time = rows.column("Time [s]");
  std::array<size_t, 3> columns{};
  for (size_t k = 0; k < columns.size(); ++k) columns[k] = rows.column(kBidmcColumns[k]);
  while (rows.next()) {
    recording.seconds.push_back(rows.number(time, false));
    for (size_t k = 0; k < columns.size(); ++k) recording.targets[k].push_back(rows.number(columns[k], true));
  }
  if (recording.seconds.empty()) throw DataError("{}: no values in it", where);
}

BidmcRecordings read_bidmc(const std::filesystem::path& place) {
  BidmcCollector collector(fmt::format("'{}'", place.string()));
  if (std::filesystem::is_directory(place)) {
    std::error_code problem;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place, problem))
      if (entry.is_regular_file()) collector.add(entry.path().filename().string(), [&] { return read_file(entry.path()); });
    if (problem) throw DataError("'{}': cannot be read ({})", place.string(), problem.message());
  } else {
    constexpr ArchiveLimits kLimits = {.file_bytes = int64_t{1} << 26, .total_bytes = int64_t{1} << 30};
    visit_archive(place, kLimits, [&](std::string_view path, const std::function<std::string()>& read) {
      collector.add(std::filesystem::path(path).filename().string(), read);
    });
  }
  return collector.finish();
}

std::optional<std::filesystem::path> find_bidmc(const std::filesystem::path& data_root) {
  const std::string release = "bidmc-ppg-and-respiration-dataset-1.0.0";
  for (const std::string& name :
       {release, std::string("bidmc_csv"), release + ".zip", std::string("bidmc_csv.tar.bz2"), std::string("bidmc_csv.tar.gz")})
    for (const std::filesystem::path& folder : {data_root / "bidmc", data_root})
      if (std::filesystem::exists(folder / name)) return folder / name;
  return std::nullopt;
}

std::string how_to_get_bidmc(const std::filesystem::path& data_root) {
  return fmt::format(
      "put bidmc-ppg-and-respiration-dataset-1.0.0.zip of https://physionet.org/content/bidmc/1.0.0/ (or its folder bidmc_csv) into '{}'",
      (data_root / "bidmc").string());
}

std::vector<BidmcWindowFacts> bidmc_windows(const BidmcRecordings& data, BidmcTarget target, int64_t stride) {
  SPT_CHECK(stride > 0, "a stride of {}", stride);
  std::vector<BidmcWindowFacts> windows;
  for (size_t r = 0; r < data.recordings.size(); ++r) {
    const BidmcRecording& recording = data.recordings[r];
    const std::vector<float>& values = recording.targets[static_cast<size_t>(target)];
    const auto samples = static_cast<int64_t>(recording.signal.size()) / kBidmcChannels;
    for (int64_t begin = 0; begin + kBidmcWindow <= samples; begin += stride) {
      double sum = 0;
      int64_t n = 0;
      for (size_t s = 0; s < values.size(); ++s) {
        const double at = static_cast<double>(recording.seconds[s]) * kBidmcRate;
        if (at < static_cast<double>(begin) || at >= static_cast<double>(begin + kBidmcWindow) || std::isnan(values[s])) continue;
        sum += values[s];
        ++n;
      }
      if (n > 0) windows.push_back({static_cast<int64_t>(r), begin, static_cast<float>(sum / static_cast<double>(n))});
    }
  }
  return windows;
}

TargetScaling::TargetScaling(std::span<const double> train) : low_(std::numeric_limits<double>::infinity()), high_(0) {
  for (const double y : train) {
    low_ = std::min(low_, std::abs(y));
    high_ = std::max(high_, std::abs(y));
  }
  if (!(high_ > low_)) throw Error("targets cannot be rescaled: the {} of train do not differ in size", train.size());
}

TreeData bidmc_tree(BidmcTarget target) {
  static constexpr std::array<std::string_view, 3> kNames = {"bidmc-hr", "bidmc-rr", "bidmc-spo2"};
  TreeData tree;
  tree.task = kNames[static_cast<size_t>(target)];
  tree.title = fmt::format("BIDMC PPG and Respiration 1.0.0, target {}", kBidmcColumns[static_cast<size_t>(target)]);
  tree.source = "Pimentel et al. 2016, PhysioNet, doi 10.13026/C2208R";
  tree.licence = "Open Data Commons Attribution License 1.0";
  tree.size = fmt::format("{} recordings of 480 s at {} Hz", kBidmcRecordings, kBidmcRate);
  tree.checksum = fmt::format("{} (over the csv files)", kBidmcOfficialHash);
  tree.find = find_bidmc;
  tree.how_to_get = how_to_get_bidmc;
  tree.verify = [target](const std::filesystem::path& root) {
    const BidmcRecordings data = load_bidmc(root);
    return TreeData::Verdict{
        data.data_hash == kBidmcOfficialHash,
        fmt::format("{} recordings, {} windows", data.recordings.size(), bidmc_windows(data, target, kBidmcStride).size()), data.data_hash};
  };
  return tree;
}

}  // namespace spt::formats
