#include <cstring>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/cache_folder.h"

namespace spt::formats {
namespace {

RawTensor float_column(const std::vector<float>& values) {
  return {"F32", {static_cast<int64_t>(values.size())}, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

std::vector<float> float_column(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.dtype != "F32") throw Error("the cache has no column '{}'", name);
  std::vector<float> values(found->second.bytes.size() / sizeof(float));
  std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(float));
  return values;
}

SafetensorsFile bidmc_as_tensors(const BidmcRecordings& data) {
  SafetensorsFile file;
  std::vector<float> ids;
  for (const BidmcRecording& recording : data.recordings) {
    const std::string prefix = fmt::format("{:04}.", recording.id);
    ids.push_back(static_cast<float>(recording.id));
    file.tensors[prefix + "signal"] = float_column(recording.signal);
    file.tensors[prefix + "seconds"] = float_column(recording.seconds);
    for (size_t k = 0; k < recording.targets.size(); ++k) file.tensors[fmt::format("{}target{}", prefix, k)] = float_column(recording.targets[k]);
  }
  file.tensors["id"] = float_column(ids);
  file.metadata = {{"data_hash", data.data_hash}};
  return file;
}

BidmcRecordings bidmc_from_tensors(const SafetensorsFile& content) {
  BidmcRecordings data;
  data.data_hash = content.metadata.at("data_hash");
  for (const float id : float_column(content, "id")) {
    BidmcRecording& recording = data.recordings.emplace_back();
    recording.id = static_cast<int64_t>(id);
    const std::string prefix = fmt::format("{:04}.", recording.id);
    recording.signal = float_column(content, prefix + "signal");
    recording.seconds = float_column(content, prefix + "seconds");
    for (size_t k = 0; k < recording.targets.size(); ++k) recording.targets[k] = float_column(content, fmt::format("{}target{}", prefix, k));
  }
  return data;
}

}  // namespace

BidmcRecordings load_bidmc(const std::filesystem::path& data_root) {
  const auto found = find_bidmc(data_root);
  if (!found) throw DataError("there are no BIDMC recordings below '{}'; {}", data_root.string(), how_to_get_bidmc(data_root));
  if (std::filesystem::is_directory(*found)) return read_bidmc(*found);
  const std::filesystem::path cache = data_root / "cache" / fmt::format("bidmc-{}.safetensors", sha256_file(*found).substr(0, 16));
  if (auto data = read_cache(cache, [&] { return bidmc_from_tensors(read_sealed(cache)); })) return std::move(*data);
  BidmcRecordings data = read_bidmc(*found);
  write_cache(data_root, cache, bidmc_as_tensors(data), "recordings");
  return data;
}

}  // namespace spt::formats
