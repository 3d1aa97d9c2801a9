#include "tasks/formats/images_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "tasks/formats/cifar.h"
#include "tasks/formats/compressed.h"
#include "tasks/formats/idx.h"

namespace spt::formats {
namespace {

constexpr int64_t kFashionSide = 28;
constexpr int64_t kFashionClasses = 10;
constexpr int64_t kMaxPartialFileBytes = int64_t{1} << 30;

/// Reads the files of one task's folder, taking down what they are.
class DataFolder {
 public:
  DataFolder(const Manifest& manifest, const std::filesystem::path& data_root, bool partial)
      : manifest_(manifest), data_root_(data_root), partial_(partial) {
    folder_ = data_folder(manifest, data_root).value_or(std::filesystem::path());
  }

  bool has(const std::string& name) const { return !folder_.empty() && find_packed(folder_, name); }

  /// Content of a file that is there.
  std::string read(const std::string& name) {
    const auto file = find_packed(folder_, name);
    SPT_CHECK(file, "'{}' is missing", name);
    auto [content, hash] = load_unpacked(data_root_, *file, kMaxPartialFileBytes);
    const auto official =
        std::find_if(manifest_.files.begin(), manifest_.files.end(), [&](const OfficialFile& f) { return f.name == name; });
    SPT_CHECK(official != manifest_.files.end(), "'{}' is not in the manifest of {}", name, manifest_.task);
    if (!partial_ && hash != official->sha256)
      throw DataError(
          "'{}' is not the published file: SHA-256 {} instead of {}; fetch it again with `spt-bench data fetch {}`, or give the task "
          "partial = true",
          file->string(), hash, official->sha256, manifest_.task);
    files_.push_back({name, hash, static_cast<int64_t>(content.size())});
    return content;
  }

  std::string where(const std::string& name) const { return fmt::format("'{}'", (folder_ / name).string()); }

  /// `partial_helps`: the files that are there are enough for partial = true.
  [[noreturn]] void throw_missing(const std::vector<std::string>& names, bool partial_helps) const {
    std::vector<std::string> places;
    for (const std::string& folder : manifest_.folders) places.push_back((data_root_ / folder).string());
    for (const auto& folder : manifest_.system_folders) places.push_back(folder.string());
    std::string help = fmt::format("run `spt-bench data fetch {}`", manifest_.task);
    if (!manifest_.package.empty()) help += fmt::format(", or install the package {}", manifest_.package);
    if (partial_helps) help += ", or give the task partial = true to run on the files that are there";
    throw DataError("task '{}': missing {} in {}; {}", manifest_.task, fmt::join(names, ", "),
                    folder_.empty() ? fmt::format("any of {}", fmt::join(places, ", ")) : folder_.string(), help);
  }

  void finish(ImageData& data) const {
    data.files = files_;
    data.data_hash = data_hash(files_);
    data.official = data.data_hash == official_hash(manifest_);
  }

 private:
  const Manifest& manifest_;
  std::filesystem::path data_root_;
  bool partial_;
  std::filesystem::path folder_;
  std::vector<FileIdentity> files_;
};

ImageSet fashion_set(DataFolder& folder, const std::string& prefix) {
  const std::string image_name = prefix + "-images-idx3-ubyte";
  const std::string label_name = prefix + "-labels-idx1-ubyte";
  for (const std::string& name : {image_name, label_name})
    if (!folder.has(name)) folder.throw_missing({name}, false);
  IdxArray images = parse_idx(folder.read(image_name), 3, folder.where(image_name));
  IdxArray labels = parse_idx(folder.read(label_name), 1, folder.where(label_name));
  if (images.shape[1] != kFashionSide || images.shape[2] != kFashionSide)
    throw DataError("{}: images of {} x {} pixels, expected 28 x 28", folder.where(image_name), images.shape[1], images.shape[2]);
  if (images.shape[0] != labels.shape[0])
    throw DataError("{}: {} labels for {} images", folder.where(label_name), labels.shape[0], images.shape[0]);
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(), [](uint8_t label) { return label >= kFashionClasses; });
  if (bad != labels.values.end())
    throw DataError("{}: label {} at {}; there are 10 classes", folder.where(label_name), *bad, bad - labels.values.begin());
  return {.n = images.shape[0],
          .channels = 1,
          .height = kFashionSide,
          .width = kFashionSide,
          .pixels = std::move(images.values),
          .labels = std::move(labels.values)};
}

}  // namespace

ImageCounts fashion_counts(std::span<const FileIdentity> files) {
  constexpr int64_t kLabelHeaderBytes = 8;
  ImageCounts counts;
  for (const FileIdentity& file : files) {
    if (file.name == "train-labels-idx1-ubyte") counts.train = file.bytes - kLabelHeaderBytes;
    if (file.name == "t10k-labels-idx1-ubyte") counts.test = file.bytes - kLabelHeaderBytes;
  }
  return counts;
}

ImageCounts cifar10_counts(std::span<const FileIdentity> files) {
  ImageCounts counts;
  for (const FileIdentity& file : files) (file.name == "test_batch.bin" ? counts.test : counts.train) += file.bytes / kCifarRecordBytes;
  return counts;
}

ImageData load_fashion(const std::filesystem::path& data_root, bool partial) {
  DataFolder folder(manifest("fashion"), data_root, partial);
  ImageData data;
  data.train = fashion_set(folder, "train");
  data.test = fashion_set(folder, "t10k");
  folder.finish(data);
  return data;
}

ImageData load_cifar10(const std::filesystem::path& data_root, bool partial, std::string_view task) {
  DataFolder folder(manifest(task), data_root, partial);
  const std::string test_name = "test_batch.bin";
  std::vector<std::string> present;
  std::vector<std::string> missing;
  for (int i = 1; i <= 5; ++i) {
    const std::string name = fmt::format("data_batch_{}.bin", i);
    (folder.has(name) ? present : missing).push_back(name);
  }
  if (!folder.has(test_name)) missing.push_back(test_name);
  const bool enough = !present.empty() && folder.has(test_name);
  if (!enough || (!partial && !missing.empty())) folder.throw_missing(missing, enough);
  ImageData data;
  for (const std::string& name : present) append_images(data.train, parse_cifar(folder.read(name), folder.where(name)));
  data.test = parse_cifar(folder.read(test_name), folder.where(test_name));
  folder.finish(data);
  return data;
}

}  // namespace spt::formats
