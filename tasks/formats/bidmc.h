#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/tree_data.h"

namespace spt::formats {

inline constexpr int64_t kBidmcRate = 125;      ///< Hz
inline constexpr int64_t kBidmcWindow = 4'000;  ///< samples: 32 s
inline constexpr int64_t kBidmcChannels = 2;    ///< PPG, ECG
inline constexpr int64_t kBidmcStride = 375;    ///< samples: gives 7,950 windows; the published archives have 7,949
inline constexpr int64_t kBidmcRecordings = 53;
inline constexpr int64_t kBidmcSamples = 60'001;  ///< of each recording
/// BidmcRecordings::data_hash of the official release (each of its files checked against the release's SHA256SUMS.txt).
inline constexpr std::string_view kBidmcOfficialHash = "d2727edc37cdc226abf9d2d5fb7e9e14a90f74b7c2e540c37c68dc84c3265146";

enum class BidmcTarget { kHeartRate, kRespiratoryRate, kSpO2 };
inline constexpr std::array<std::string_view, 3> kBidmcColumns = {"HR", "RESP", "SpO2"};  ///< in *_Numerics.csv
inline constexpr std::array<std::string_view, 3> kBidmcFolders = {"HR", "RR", "SpO2"};    ///< of the TSER archives

/// One recording of eight minutes.
struct BidmcRecording {
  int64_t id = 0;                             ///< NN of bidmc_NN_Signals.csv
  std::vector<float> signal;                  ///< (samples, 2): PLETH, II
  std::vector<float> seconds;                 ///< times of `targets`, in seconds
  std::array<std::vector<float>, 3> targets;  ///< by BidmcTarget, one a second; NaN where missing
};

struct BidmcRecordings {
  std::vector<BidmcRecording> recordings;  ///< by id
  std::string data_hash;                   ///< SHA-256 over "<sha256> <name>\n" of the two files of each recording, in order of name
};

/// The columns of a signal file that count; columns are found by name, for their order differs between recordings.
/// Errors: DataError beginning with `where` with the line: no column, another number of columns, no number, a rate other than 125 Hz.
std::vector<float> parse_bidmc_signals(std::string_view csv, const std::string& where);
/// Fills `seconds` and `targets`. Errors: as above; "NaN" is a missing value.
void parse_bidmc_numerics(std::string_view csv, BidmcRecording& recording, const std::string& where);

/// Reads `bidmc_NN_{Signals,Numerics}.csv` of a folder, or of an archive, below any path inside.
/// Errors: DataError naming file and line; a recording without one of its files.
BidmcRecordings read_bidmc(const std::filesystem::path& archive_or_folder);

std::optional<std::filesystem::path> find_bidmc(const std::filesystem::path& data_root);
std::string how_to_get_bidmc(const std::filesystem::path& data_root);

/// What find_bidmc() finds; an archive's content is kept in `<data root>/cache/` (as imdb.h does), because decompressing it takes seconds.
/// Errors: DataError saying what to do when there is no data.
BidmcRecordings load_bidmc(const std::filesystem::path& data_root);

/// A window of a recording, and its target: the mean of the values inside.
struct BidmcWindowFacts {
  int64_t recording = 0;  ///< counts BidmcRecordings::recordings
  int64_t begin = 0;      ///< first sample
  float target = 0;
};
/// Windows of kBidmcWindow samples every `stride` samples, recording by recording; those without any value of the target are left out.
std::vector<BidmcWindowFacts> bidmc_windows(const BidmcRecordings& data, BidmcTarget target, int64_t stride);

/// Windows as the TSER archives have them.
struct BidmcTable {
  std::vector<float> x;  ///< (n, 4000, 2)
  std::vector<float> y;  ///< (n)
  int64_t size() const { return static_cast<int64_t>(y.size()); }
};
struct BidmcTables {
  /// From .npy: train, validation, test as published. From .ts: everything is in the first, TRAIN before TEST.
  std::array<BidmcTable, 3> tables;
  bool is_split = false;
  std::string data_hash;
};

/// A `.ts` file with two dimensions of 4,000 values and a target on each line of its data.
/// Errors: DataError beginning with `where` with the line: no @data, another number of values or dimensions, what is no number.
BidmcTable parse_bidmc_ts(std::string_view text, const std::string& where);

/// Reads <root>/bidmc/{HR,RR,SpO2}/reshuffle/{train,valid,test}{x,y}.npy, else BIDMC32{HR,RR,SpO2}_{TRAIN,TEST}.ts in <root>/bidmc or in
/// <root>/bidmc/{HR,RR,SpO2}.
/// Errors: DataError saying where the files are looked for; or naming the file and what is wrong in it.
BidmcTables load_bidmc_tables(const std::filesystem::path& data_root, BidmcTarget target);

/// Published rescaling: y -> 2 (y - lo)/(hi - lo) - 1, with lo and hi the smallest and largest |y| of train.
///
/// Errors: Error if all of them are equal, or there are none.
/// Source: arXiv:2310.02980 and its code; must equal the reference case preprocess_bidmc_targets.
class TargetScaling {
 public:
  explicit TargetScaling(std::span<const double> train);
  double operator()(double y) const { return 2 * (y - low_) / (high_ - low_) - 1; }

 private:
  double low_, high_;
};

/// What `spt-bench data` says about the three tasks.
TreeData bidmc_tree(BidmcTarget target);

}  // namespace spt::formats
