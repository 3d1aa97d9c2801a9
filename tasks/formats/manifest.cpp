#include "tasks/formats/manifest.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "tasks/formats/compressed.h"

namespace spt::formats {
namespace {

constexpr int64_t kMaxDataFileBytes = int64_t{1} << 32;

Manifest fashion_manifest() {
  return {
      .task = "fashion",
      .title = "Fashion-MNIST",
      .source = "Xiao, Rasul, Vollgraf, Zalando SE 2017, github.com/zalandoresearch/fashion-mnist",
      .licence = "MIT",
      .folders = {"fashion", "fashion-mnist", "FashionMNIST/raw"},
      .system_folders = {"/usr/share/datasets/fashion-mnist"},
      .package = "dataset-fashion-mnist",
      .files = {{"t10k-images-idx3-ubyte", 7'840'016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
                {"t10k-labels-idx1-ubyte", 10'008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
                {"train-images-idx3-ubyte", 47'040'016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
                {"train-labels-idx1-ubyte", 60'008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"}},
      .downloads = {{"t10k-images-idx3-ubyte.gz", 0, "", {"t10k-images-idx3-ubyte"}},
                    {"t10k-labels-idx1-ubyte.gz", 0, "", {"t10k-labels-idx1-ubyte"}},
                    {"train-images-idx3-ubyte.gz", 0, "", {"train-images-idx3-ubyte"}},
                    {"train-labels-idx1-ubyte.gz", 0, "", {"train-labels-idx1-ubyte"}}},
      .mirrors = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
  };
}

Manifest image_manifest() {
  const std::vector<OfficialFile> files = {
      {"data_batch_1.bin", 30'730'000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
      {"data_batch_2.bin", 30'730'000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
      {"data_batch_3.bin", 30'730'000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
      {"data_batch_4.bin", 30'730'000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
      {"data_batch_5.bin", 30'730'000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
      {"test_batch.bin", 30'730'000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}};
  std::vector<std::string> names;
  for (const OfficialFile& file : files) names.push_back(file.name);
  return {
      .task = "image",
      .title = "CIFAR-10, binary version",
      .source = "Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html",
      .licence = "none stated; the authors ask for the citation of the technical report",
      .folders = {"image", "cifar10", "cifar-10-batches-bin"},
      .system_folders = {},
      .package = "",
      .files = files,
      .downloads = {{"cifar-10-binary.tar.gz", 170'052'171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", names}},
      .mirrors = {"https://www.cs.toronto.edu/~kriz/"},
  };
}

/// The files of image, in the same folders, for the task that takes their colours.
Manifest scifar_manifest() {
  Manifest scifar = image_manifest();
  scifar.task = "scifar";
  return scifar;
}

FileCheck check_file(const OfficialFile& official, const std::filesystem::path& folder) {
  FileCheck check{.name = official.name, .state = FileState::kMissing, .path = {}, .sha256 = {}, .bytes = 0, .problem = {}};
  const auto file = folder.empty() ? std::nullopt : find_packed(folder, official.name);
  if (!file) return check;
  check.path = *file;
  check.state = FileState::kDifferent;
  try {
    const std::string content = read_unpacked(*file, kMaxDataFileBytes);
    check.bytes = static_cast<int64_t>(content.size());
    check.sha256 = sha256(content);
    if (check.sha256 == official.sha256) check.state = FileState::kOfficial;
  } catch (const DataError& e) {  // a verdict on this file: the others are still looked at
    check.problem = e.what();
  }
  return check;
}

/// Path, size and time of each file: other stamps, other files.
std::string file_stamps(const Manifest& manifest, const std::filesystem::path& folder) {
  std::string stamps;
  for (const OfficialFile& official : manifest.files) {
    const auto file = find_packed(folder, official.name);
    if (!file) continue;
    const auto time = std::filesystem::last_write_time(*file).time_since_epoch().count();
    stamps += fmt::format("{} {} {}\n", file->string(), std::filesystem::file_size(*file), time);
  }
  return stamps;
}

}  // namespace

const std::vector<Manifest>& manifests() {
  static const std::vector<Manifest> kManifests = {fashion_manifest(), image_manifest(), scifar_manifest()};
  return kManifests;
}

const Manifest& manifest(std::string_view task) {
  std::vector<std::string> known;
  for (const Manifest& m : manifests()) {
    if (m.task == task) return m;
    known.push_back(m.task);
  }
  throw Error("{}", unknown_name("task with data files", task, known));
}

std::string data_hash(std::vector<FileIdentity> files) {
  std::sort(files.begin(), files.end(), [](const FileIdentity& a, const FileIdentity& b) { return a.name < b.name; });
  Sha256 hash;
  for (const FileIdentity& file : files) hash.update(file.sha256 + " " + file.name + "\n");
  return hash.hex();
}

std::vector<FileIdentity> official_files(const Manifest& manifest) {
  std::vector<FileIdentity> files;
  for (const OfficialFile& file : manifest.files) files.push_back({file.name, file.sha256, file.bytes});
  return files;
}

std::string official_hash(const Manifest& manifest) { return data_hash(official_files(manifest)); }

std::optional<std::filesystem::path> data_folder(const Manifest& manifest, const std::filesystem::path& data_root) {
  std::vector<std::filesystem::path> candidates;
  for (const std::string& folder : manifest.folders) candidates.push_back(data_root / folder);
  candidates.insert(candidates.end(), manifest.system_folders.begin(), manifest.system_folders.end());
  for (const std::filesystem::path& folder : candidates)
    for (const OfficialFile& file : manifest.files)
      if (find_packed(folder, file.name)) return folder;
  return std::nullopt;
}

bool Verification::official() const {
  return std::all_of(files.begin(), files.end(), [](const FileCheck& file) { return file.state == FileState::kOfficial; });
}

bool Verification::any() const {
  return std::any_of(files.begin(), files.end(), [](const FileCheck& file) { return file.state != FileState::kMissing; });
}

std::vector<FileIdentity> Verification::present() const {
  std::vector<FileIdentity> present;
  for (const FileCheck& file : files)
    if (!file.sha256.empty()) present.push_back({file.name, file.sha256, file.bytes});
  return present;
}

std::string Verification::data_hash() const { return formats::data_hash(present()); }

Verification verify(const Manifest& manifest, const std::filesystem::path& data_root) {
  Verification verification{.folder = data_folder(manifest, data_root).value_or(std::filesystem::path()), .files = {}};
  for (const OfficialFile& official : manifest.files) verification.files.push_back(check_file(official, verification.folder));
  return verification;
}

std::filesystem::path verified_record_file(const Manifest& manifest, const std::filesystem::path& data_root) {
  return data_root / manifest.task / "verified.json";
}

void write_verified_record(const Manifest& manifest, const std::filesystem::path& data_root, const Verification& verification) {
  nlohmann::json files = nlohmann::json::array();
  for (const FileIdentity& file : verification.present())
    files.push_back({{"name", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  const nlohmann::json record = {{"format", 1},
                                 {"task", manifest.task},
                                 {"data_hash", verification.data_hash()},
                                 {"official", verification.official()},
                                 {"files", files}};
  const std::filesystem::path file = verified_record_file(manifest, data_root);
  std::filesystem::create_directories(file.parent_path());
  write_file_atomically(file, record.dump(2) + "\n");
}

std::optional<VerifiedRecord> read_verified_record(const Manifest& manifest, const std::filesystem::path& data_root) {
  const std::filesystem::path file = verified_record_file(manifest, data_root);
  if (!std::filesystem::exists(file)) return std::nullopt;
  const std::string advice = fmt::format("run `spt-bench data verify {}` again", manifest.task);
  try {
    const nlohmann::json json = parse_json(read_file(file), fmt::format("'{}'", file.string()));
    JsonReader reader(json, fmt::format("'{}'", file.string()));
    if (reader.get<int64_t>("format") != 1 || reader.get<std::string>("task") != manifest.task)
      throw Error("'{}': not the record of task '{}'", file.string(), manifest.task);
    VerifiedRecord record{.data_hash = reader.get<std::string>("data_hash"), .files = {}, .official = reader.get<bool>("official")};
    for (const nlohmann::json& entry : reader.get<nlohmann::json::array_t>("files")) {
      JsonReader item(entry, fmt::format("'{}': files", file.string()));
      record.files.push_back({item.get<std::string>("name"), item.get<std::string>("sha256"), item.get<int64_t>("bytes")});
      item.finish();
    }
    reader.finish();
    if (data_hash(record.files) != record.data_hash) throw Error("'{}': data_hash is not that of the files", file.string());
    return record;
  } catch (const Error& e) {
    throw DataError("{}; {}", e.what(), advice);
  }
}

VerifiedRecord local_data(const Manifest& manifest, const std::filesystem::path& data_root) {
  if (auto record = read_verified_record(manifest, data_root)) return *record;
  const auto folder = data_folder(manifest, data_root);
  if (!folder)
    throw DataError("task '{}': no data files in '{}'; `spt-bench data list {}` tells which and where", manifest.task, data_root.string(),
                    manifest.task);
  // Unpacking and hashing takes seconds, and planning asks once for every set of options.
  static std::mutex mutex;
  static std::map<std::string, VerifiedRecord> known;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known.try_emplace(manifest.task + "\n" + file_stamps(manifest, *folder));
  if (fresh) {
    const Verification found = verify(manifest, data_root);
    entry->second = {.data_hash = found.data_hash(), .files = found.present(), .official = found.official()};
  }
  return entry->second;
}

}  // namespace spt::formats
