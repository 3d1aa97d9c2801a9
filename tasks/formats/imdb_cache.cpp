#include "tasks/formats/imdb.h"

#include <cstring>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/cache_folder.h"

namespace spt::formats {
namespace {

RawTensor integers(const std::vector<int64_t>& values) {
  RawTensor tensor{"I64", {static_cast<int64_t>(values.size())}, std::string(values.size() * sizeof(int64_t), '\0')};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<int64_t> integers(const RawTensor& tensor) {
  if (tensor.dtype != "I64") throw Error("a column of the cache is {}, not I64", tensor.dtype);
  std::vector<int64_t> values(tensor.bytes.size() / sizeof(int64_t));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

void put_split(SafetensorsFile& file, const std::string& split, const std::vector<Review>& reviews) {
  std::vector<int64_t> labels, ids, ratings, ends;
  std::string text;
  for (const Review& review : reviews) {
    labels.push_back(review.label);
    ids.push_back(review.id);
    ratings.push_back(review.rating);
    text += review.text;
    ends.push_back(static_cast<int64_t>(text.size()));
  }
  const auto bytes = static_cast<int64_t>(text.size());
  file.tensors[split + ".text"] = {"U8", {bytes}, std::move(text)};
  file.tensors[split + ".end"] = integers(ends);
  file.tensors[split + ".label"] = integers(labels);
  file.tensors[split + ".id"] = integers(ids);
  file.tensors[split + ".rating"] = integers(ratings);
}

std::vector<Review> get_split(const SafetensorsFile& file, const std::string& split) {
  const std::string& text = file.tensors.at(split + ".text").bytes;
  const std::vector<int64_t> ends = integers(file.tensors.at(split + ".end"));
  const std::vector<int64_t> labels = integers(file.tensors.at(split + ".label"));
  const std::vector<int64_t> ids = integers(file.tensors.at(split + ".id"));
  const std::vector<int64_t> ratings = integers(file.tensors.at(split + ".rating"));
  std::vector<Review> reviews(ends.size());
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto end = static_cast<size_t>(ends[i]);
    reviews[i] = {labels.at(i), ids.at(i), ratings.at(i), text.substr(begin, end - begin)};
    begin = end;
  }
  return reviews;
}

SafetensorsFile reviews_as_tensors(const ImdbData& data) {
  SafetensorsFile content;
  put_split(content, "train", data.train);
  put_split(content, "test", data.test);
  content.metadata["data_hash"] = data.data_hash;
  return content;
}

}  // namespace

std::filesystem::path imdb_cache_file(const std::filesystem::path& data_root, std::string_view archive_sha256) {
  return data_root / "cache" / fmt::format("imdb-{}.safetensors", archive_sha256.substr(0, 16));
}

ImdbData load_imdb(const std::filesystem::path& data_root) {
  const auto found = find_imdb(data_root);
  if (!found) throw DataError("there are no IMDb reviews below '{}'. {}", data_root.string(), how_to_get_imdb(data_root));
  if (std::filesystem::is_directory(*found)) return read_imdb_folder(*found);
  const std::filesystem::path cache = imdb_cache_file(data_root, sha256_file(*found));
  const auto make = [&] {
    const SafetensorsFile content = read_sealed(cache);
    return ImdbData{get_split(content, "train"), get_split(content, "test"), content.metadata.at("data_hash")};
  };
  if (auto data = read_cache(cache, make)) return std::move(*data);
  ImdbData data = read_imdb_archive(*found);
  write_cache(data_root, cache, reviews_as_tensors(data), "reviews");
  return data;
}

}  // namespace spt::formats
