#include <cmath>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/cache_content.h"
#include "tasks/formats/cache_folder.h"

namespace spt::formats {

SafetensorsFile bidmc_as_cache(const BidmcRecordings& data) {
  SafetensorsFile file;
  std::vector<float> ids;
  for (const BidmcRecording& recording : data.recordings) {
    const std::string prefix = fmt::format("{:04}.", recording.id);
    ids.push_back(static_cast<float>(recording.id));
    file.tensors[prefix + "signal"] = cache_column(recording.signal);
    file.tensors[prefix + "seconds"] = cache_column(recording.seconds);
    for (size_t k = 0; k < recording.targets.size(); ++k)
      file.tensors[fmt::format("{}target{}", prefix, k)] = cache_column(recording.targets[k]);
  }
  file.tensors["id"] = cache_column(ids);
  file.metadata = {{"data_hash", data.data_hash}};
  return file;
}

BidmcRecordings bidmc_from_cache(const SafetensorsFile& file) {
  constexpr float kLargestId = 1 << 20;  // float32 tells all smaller ones apart
  BidmcRecordings data;
  data.data_hash = cache_field(file, "data_hash");
  for (const float id : cache_values<float>(file, "id")) {
    if (!(id >= 0 && id <= kLargestId && std::trunc(id) == id)) throw Error("the cache has a recording {}", id);
    BidmcRecording& recording = data.recordings.emplace_back();
    recording.id = static_cast<int64_t>(id);
    const std::string prefix = fmt::format("{:04}.", recording.id);
    recording.signal = cache_values<float>(file, prefix + "signal");
    recording.seconds = cache_values<float>(file, prefix + "seconds");
    if (recording.signal.size() % kBidmcChannels != 0)
      throw Error("the cache's signal of recording {} has an odd number of values", recording.id);
    for (size_t k = 0; k < recording.targets.size(); ++k)
      recording.targets[k] = cache_values<float>(file, fmt::format("{}target{}", prefix, k), recording.seconds.size());
  }
  return data;
}

BidmcRecordings load_bidmc(const std::filesystem::path& data_root) {
  const auto found = find_bidmc(data_root);
  if (!found) throw DataError("there are no BIDMC recordings below '{}'; {}", data_root.string(), how_to_get_bidmc(data_root));
  if (std::filesystem::is_directory(*found)) return read_bidmc(*found);
  const std::filesystem::path cache = data_root / "cache" / fmt::format("bidmc-{}.safetensors", sha256_file(*found).substr(0, 16));
  if (auto data = read_cache(cache, [&] { return bidmc_from_cache(read_sealed(cache)); })) return std::move(*data);
  BidmcRecordings data = read_bidmc(*found);
  write_cache(data_root, cache, bidmc_as_cache(data), "recordings");
  return data;
}

}  // namespace spt::formats
