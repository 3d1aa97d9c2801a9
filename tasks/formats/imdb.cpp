#include "tasks/formats/imdb.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/archive.h"

namespace spt::formats {
namespace {

constexpr std::array<std::string_view, 2> kImdbSplits = {"train", "test"};
constexpr std::array<std::string_view, 2> kImdbClasses = {"neg", "pos"};  // by label

/// ID and RATING of "ID_RATING.txt".
std::optional<std::pair<int64_t, int64_t>> parse_review_name(std::string_view name) {
  int64_t id = 0;
  int64_t rating = 0;
  const char* const end = name.data() + name.size();
  const auto [after_id, id_problem] = std::from_chars(name.data(), end, id);
  if (id_problem != std::errc() || id < 0 || after_id == end || *after_id != '_') return std::nullopt;
  const auto [after_rating, rating_problem] = std::from_chars(after_id + 1, end, rating);
  if (rating_problem != std::errc() || std::string_view(after_rating, end - after_rating) != ".txt") return std::nullopt;
  return std::pair(id, rating);
}

/// Collects reviews from any source, in any order.
class ImdbCollector {
 public:
  explicit ImdbCollector(std::string where) : where_(std::move(where)) {}

  void add(size_t split, size_t label, std::string_view name, std::string text) {
    const auto parsed = parse_review_name(name);
    const std::string path = fmt::format("{}/{}/{}", kImdbSplits[split], kImdbClasses[label], name);
    if (!parsed) throw DataError("{}: '{}' is not named like a review (ID_RATING.txt)", where_, path);
    const auto [id, rating] = *parsed;
    if (label == 0 ? rating < 1 || rating > 4 : rating < 7 || rating > 10) {
      throw DataError("{}: the rating in '{}' does not fit its folder (neg: 1 to 4, pos: 7 to 10)", where_, path);
    }
    reviews_[split].push_back({static_cast<int64_t>(label), id, rating, std::move(text)});
  }

  ImdbData finish() {
    for (size_t split = 0; split < 2; ++split) order_and_check(split);
    ImdbData data{std::move(reviews_[0]), std::move(reviews_[1]), ""};
    data.data_hash = hash(data);
    return data;
  }

 private:
  void order_and_check(size_t split) {
    std::vector<Review>& reviews = reviews_[split];
    const auto key = [](const Review& review) { return std::pair(review.label, review.id); };
    std::sort(reviews.begin(), reviews.end(), [&](const Review& a, const Review& b) { return key(a) < key(b); });
    const auto same = [&](const Review& a, const Review& b) { return key(a) == key(b); };
    const auto twice = std::adjacent_find(reviews.begin(), reviews.end(), same);
    if (twice != reviews.end()) throw DataError("{}: the id of '{}' stands twice", where_, review_name(kImdbSplits[split], *twice));
    for (size_t label = 0; label < 2; ++label) {
      if (std::none_of(reviews.begin(), reviews.end(), [&](const Review& r) { return r.label == static_cast<int64_t>(label); })) {
        throw DataError("{}: there are no reviews in aclImdb/{}/{}", where_, kImdbSplits[split], kImdbClasses[label]);
      }
    }
  }

  static std::string hash(const ImdbData& data) {
    std::map<std::string, std::string> lines;
    for (const Review& review : data.train) lines[review_name("train", review)] = sha256(review.text);
    for (const Review& review : data.test) lines[review_name("test", review)] = sha256(review.text);
    Sha256 all;
    for (const auto& [name, digest] : lines) all.update(fmt::format("{} {}\n", digest, name));
    return all.hex();
  }

  std::string where_;
  std::array<std::vector<Review>, 2> reviews_;
};

template <size_t N>
std::optional<size_t> imdb_index(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<size_t>(found - names.begin());
}

}  // namespace

std::string review_name(std::string_view split, const Review& review) {
  return fmt::format("{}/{}/{}_{}.txt", split, kImdbClasses.at(review.label), review.id, review.rating);
}

ImdbData read_imdb_folder(const std::filesystem::path& folder) {
  ImdbCollector collector(fmt::format("'{}'", folder.string()));
  for (size_t split = 0; split < 2; ++split) {
    for (size_t label = 0; label < 2; ++label) {
      const std::filesystem::path part = folder / kImdbSplits[split] / kImdbClasses[label];
      std::error_code problem;
      std::filesystem::directory_iterator files(part, problem);
      if (problem) {
        throw DataError("'{}' is no whole aclImdb folder: cannot read '{}' ({})", folder.string(), part.string(), problem.message());
      }
      for (const auto& file : files) collector.add(split, label, file.path().filename().string(), read_file(file.path()));
    }
  }
  return collector.finish();
}

ImdbData read_imdb_archive(const std::filesystem::path& archive) {
  ImdbCollector collector(fmt::format("'{}'", archive.string()));
  constexpr ArchiveLimits kLimits = {.file_bytes = int64_t{1} << 20, .total_bytes = int64_t{1} << 30};
  visit_archive(archive, kLimits, [&](std::string_view path, const std::function<std::string()>& read) {
    const std::filesystem::path inside(path);
    const std::filesystem::path part = inside.parent_path();
    const std::filesystem::path top = part.parent_path().parent_path();
    const auto split = imdb_index(kImdbSplits, part.parent_path().filename().string());
    const auto label = imdb_index(kImdbClasses, part.filename().string());
    if (top.filename() == "aclImdb" && split && label) collector.add(*split, *label, inside.filename().string(), read());
  });
  return collector.finish();
}

std::optional<std::filesystem::path> find_imdb(const std::filesystem::path& data_root) {
  constexpr std::array<std::string_view, 6> kNames = {"aclImdb",        "aclImdb_v1.tar.gz", "aclImdb_labelled.tar.xz",
                                                      "aclImdb.tar.gz", "aclImdb.tar.xz",    "aclImdb.tar"};
  for (const std::string_view name : kNames) {
    for (const std::filesystem::path& folder : {data_root / "imdb", data_root}) {
      if (std::filesystem::exists(folder / name)) return folder / name;
    }
  }
  return std::nullopt;
}

std::string how_to_get_imdb(const std::filesystem::path& data_root) {
  return fmt::format(
      "Put the unpacked folder at '{0}/imdb/aclImdb' or the archive at '{0}/imdb/aclImdb_v1.tar.gz' "
      "(https://ai.stanford.edu/~amaas/data/sentiment/), or name another data root with --data",
      data_root.string());
}

TreeData imdb_tree() {
  TreeData tree;
  tree.task = "text";
  tree.title = "Large Movie Review Dataset (IMDb)";
  tree.source = "Maas et al. 2011, ai.stanford.edu/~amaas/data/sentiment";
  tree.licence = "none stated; the authors ask for the citation of the paper";
  tree.size = "25,000 train and 25,000 test reviews, 65,483,508 bytes of text";
  tree.find = find_imdb;
  tree.how_to_get = how_to_get_imdb;
  tree.verify = [](const std::filesystem::path& root) {
    const ImdbData data = load_imdb(root);
    return TreeData::Verdict{data.data_hash == kImdbOfficialHash,
                             fmt::format("{} train and {} test reviews", data.train.size(), data.test.size()), data.data_hash};
  };
  return tree;
}

}  // namespace spt::formats
