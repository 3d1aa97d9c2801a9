#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/cache_content.h"
#include "tasks/formats/cache_folder.h"
#include "tasks/formats/imdb.h"

namespace spt::formats {
namespace {

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
  file.tensors[split + ".text"] = cache_column(std::move(text));
  file.tensors[split + ".end"] = cache_column(ends);
  file.tensors[split + ".label"] = cache_column(labels);
  file.tensors[split + ".id"] = cache_column(ids);
  file.tensors[split + ".rating"] = cache_column(ratings);
}

std::vector<Review> get_split(const SafetensorsFile& file, const std::string& split) {
  const std::string& text = cache_bytes(file, split + ".text", "U8");
  const auto ends = cache_values<int64_t>(file, split + ".end");
  const auto labels = cache_values<int64_t>(file, split + ".label", ends.size());
  const auto ids = cache_values<int64_t>(file, split + ".id", ends.size());
  const auto ratings = cache_values<int64_t>(file, split + ".rating", ends.size());
  std::vector<Review> reviews(ends.size());
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < begin || ends[i] > static_cast<int64_t>(text.size()) || labels[i] < 0 || labels[i] > 1)
      throw Error("the cache's review {} of {} ends at {} of {} bytes and has label {}", i, split, ends[i], text.size(), labels[i]);
    reviews[i] = {labels[i], ids[i], ratings[i], text.substr(static_cast<size_t>(begin), static_cast<size_t>(ends[i] - begin))};
    begin = ends[i];
  }
  return reviews;
}

}  // namespace

SafetensorsFile imdb_as_cache(const ImdbData& data) {
  SafetensorsFile content;
  put_split(content, "train", data.train);
  put_split(content, "test", data.test);
  content.metadata["data_hash"] = data.data_hash;
  return content;
}

ImdbData imdb_from_cache(const SafetensorsFile& file) {
  return {get_split(file, "train"), get_split(file, "test"), cache_field(file, "data_hash")};
}

std::filesystem::path imdb_cache_file(const std::filesystem::path& data_root, std::string_view archive_sha256) {
  return data_root / "cache" / fmt::format("imdb-{}.safetensors", archive_sha256.substr(0, 16));
}

ImdbData load_imdb(const std::filesystem::path& data_root) {
  const auto found = find_imdb(data_root);
  if (!found) throw DataError("there are no IMDb reviews below '{}'. {}", data_root.string(), how_to_get_imdb(data_root));
  if (std::filesystem::is_directory(*found)) return read_imdb_folder(*found);
  const std::filesystem::path cache = imdb_cache_file(data_root, sha256_file(*found));
  if (auto data = read_cache(cache, [&] { return imdb_from_cache(read_sealed(cache)); })) return std::move(*data);
  ImdbData data = read_imdb_archive(*found);
  write_cache(data_root, cache, imdb_as_cache(data), "reviews");
  return data;
}

}  // namespace spt::formats
