#include "tasks/formats/aan.h"

#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/archive.h"
#include "tasks/formats/tokenize.h"
#include "tasks/formats/tsv.h"

namespace spt::formats {
namespace {

constexpr int64_t kMaxAanFieldBytes = int64_t{64} << 20;
constexpr std::array<std::string_view, 3> kAanSplits = {"train", "eval", "test"};

/// Distinct texts, numbered in the order they come.
class TextTable {
 public:
  /// `where` is asked for a new text only, which is checked once.
  template <class Where>
  int64_t number(const std::string& text, Where&& where) {
    const auto [entry, fresh] = numbers_.try_emplace(text, static_cast<int64_t>(numbers_.size()));
    if (fresh) code_points(text, where());
    return entry->second;
  }
  std::vector<std::string> take() {
    std::vector<std::string> texts(numbers_.size());
    while (!numbers_.empty()) {
      auto node = numbers_.extract(numbers_.begin());
      texts[static_cast<size_t>(node.mapped())] = std::move(node.key());
    }
    return texts;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

int64_t aan_label(const std::string& field, const std::string& where) {
  if (field == "0" || field == "0.0") return 0;
  if (field == "1" || field == "1.0") return 1;
  throw DataError("{}: label '{}'; there are 0 and 1", where, field.substr(0, 40));
}

std::string aan_hash(const std::map<std::string, std::string>& digests) {
  Sha256 all;
  for (const auto& [name, digest] : digests) all.update(fmt::format("{} {}\n", digest, name));
  return all.hex();
}

/// Hands a file over in blocks and gives its SHA-256.
std::string stream_file(const std::filesystem::path& file, const std::function<void(std::string_view)>& feed) {
  std::ifstream input(file, std::ios::binary);
  if (!input) throw DataError("cannot read '{}': no such file", file.string());
  Sha256 hash;
  std::string block(size_t{1} << 20, '\0');
  while (input) {
    input.read(block.data(), static_cast<std::streamsize>(block.size()));
    const std::string_view bytes(block.data(), static_cast<size_t>(input.gcount()));
    hash.update(bytes);
    feed(bytes);
  }
  if (input.bad()) throw DataError("'{}': cannot be read to its end", file.string());
  return hash.hex();
}

void check_columns(std::span<const std::string> fields, size_t wanted, const char* columns, const std::string& where) {
  if (fields.size() != wanted) throw DataError("{}: {} columns instead of {} ({})", where, fields.size(), wanted, columns);
}

/// Files of the stand-in, whatever they came in.
class ScisummnetCollector {
 public:
  explicit ScisummnetCollector(std::string where) : where_(std::move(where)) {}

  void add_paper(const std::string& name, std::string text) {
    const std::string id = name.substr(0, name.size() - std::string_view(".txt").size());
    digests_["papers/" + name] = sha256(text);
    code_points(text, fmt::format("{}: papers/{}", where_, name));
    if (!numbers_.try_emplace(id, static_cast<int64_t>(data_.texts.size())).second)
      throw DataError("{}: the paper {} stands twice", where_, id);
    data_.texts.push_back(std::move(text));
  }
  void add_pairs(size_t split, const std::string& content) {
    const std::string name = fmt::format("pairs.{}.tsv", kAanSplits[split]);
    digests_[name] = sha256(content);
    lines_[split] = content;
  }
  AanData finish() {
    for (size_t split = 0; split < kAanSplits.size(); ++split) read_pairs(split);
    data_.data_hash = aan_hash(digests_);
    return std::move(data_);
  }

 private:
  void read_pairs(size_t split) {
    const std::string where = fmt::format("{}: pairs.{}.tsv", where_, kAanSplits[split]);
    TsvReader reader(where, kMaxAanFieldBytes, [&](int64_t line, std::span<const std::string> fields) {
      const std::string at = fmt::format("{}, line {}", where, line);
      check_columns(fields, 3, "label, id, id", at);
      data_.pairs[split].push_back({aan_label(fields[0], at), paper(fields[1], at), paper(fields[2], at)});
    });
    reader.feed(lines_[split]);
    reader.finish();
    if (data_.pairs[split].empty()) throw DataError("{}: missing or empty", where);
  }
  int64_t paper(const std::string& id, const std::string& where) const {
    const auto found = numbers_.find(id);
    if (found == numbers_.end()) throw DataError("{}: there is no paper '{}'", where, id.substr(0, 40));
    return found->second;
  }
  std::string where_;
  AanData data_;
  std::map<std::string, int64_t> numbers_;
  std::map<std::string, std::string> digests_;
  std::array<std::string, 3> lines_;
};

std::optional<size_t> pairs_split(std::string_view name) {
  for (size_t split = 0; split < kAanSplits.size(); ++split)
    if (name == fmt::format("pairs.{}.tsv", kAanSplits[split])) return split;
  return std::nullopt;
}

std::filesystem::path aan_file(const std::filesystem::path& folder, size_t split) {
  return folder / fmt::format("new_aan_pairs.{}.tsv", kAanSplits[split]);
}

}  // namespace

AanData read_aan_tsv(const std::filesystem::path& folder) {
  AanData data;
  TextTable texts;
  std::map<std::string, std::string> digests;
  for (size_t split = 0; split < kAanSplits.size(); ++split) {
    const std::filesystem::path file = aan_file(folder, split);
    const std::string where = fmt::format("'{}'", file.string());
    TsvReader reader(where, kMaxAanFieldBytes, [&](int64_t line, std::span<const std::string> fields) {
      const auto at = [&](const char* part) { return fmt::format("{}, line {}{}", where, line, part); };
      check_columns(fields, 5, "label, id, id, text, text", at(""));
      const int64_t first = texts.number(fields[3], [&] { return at(", first text"); });
      const int64_t second = texts.number(fields[4], [&] { return at(", second text"); });
      data.pairs[split].push_back({aan_label(fields[0], at("")), first, second});
    });
    digests[file.filename().string()] = stream_file(file, [&](std::string_view bytes) { reader.feed(bytes); });
    reader.finish();
    if (data.pairs[split].empty()) throw DataError("{}: no pairs in it", where);
  }
  data.texts = texts.take();
  data.data_hash = aan_hash(digests);
  return data;
}

AanData read_scisummnet(const std::filesystem::path& place) {
  ScisummnetCollector collector(fmt::format("'{}'", place.string()));
  if (std::filesystem::is_directory(place)) {
    std::error_code problem;
    std::map<std::string, std::filesystem::path> papers;  // the order of a folder is nobody's
    for (const auto& file : std::filesystem::directory_iterator(place / "papers", problem))
      if (file.path().extension() == ".txt") papers[file.path().filename().string()] = file.path();
    if (problem) throw DataError("'{}': cannot read papers ({})", place.string(), problem.message());
    for (const auto& [name, file] : papers) collector.add_paper(name, read_file(file));
    for (size_t split = 0; split < kAanSplits.size(); ++split) {
      const std::filesystem::path file = place / fmt::format("pairs.{}.tsv", kAanSplits[split]);
      if (std::filesystem::exists(file)) collector.add_pairs(split, read_file(file));
    }
    return collector.finish();
  }
  std::map<std::string, std::string> papers;
  constexpr ArchiveLimits kLimits = {.file_bytes = int64_t{1} << 26, .total_bytes = int64_t{1} << 31};
  visit_archive(place, kLimits, [&](std::string_view path, const std::function<std::string()>& read) {
    const std::filesystem::path inside(path);
    const std::string name = inside.filename().string();
    if (inside.parent_path().filename() == "papers" && inside.extension() == ".txt") {
      if (!papers.try_emplace(name, read()).second) throw DataError("'{}': the paper {} stands twice", place.string(), name);
    } else if (const auto split = pairs_split(name)) {
      collector.add_pairs(*split, read());
    }
  });
  for (auto& [name, text] : papers) collector.add_paper(name, std::move(text));
  return collector.finish();
}

std::optional<std::filesystem::path> find_aan_tsv(const std::filesystem::path& data_root) {
  for (const char* folder : {"aan", "retrieval", "lra_release/lra_release/tsv_data", "lra_release/tsv_data"})
    if (std::filesystem::exists(aan_file(data_root / folder, 0))) return data_root / folder;
  return std::nullopt;
}

std::optional<std::filesystem::path> find_scisummnet(const std::filesystem::path& data_root) {
  for (const char* folder : {"aan", "retrieval"})
    for (const char* name : {"aan_scisummnet", "aan_scisummnet.tar.xz", "aan_scisummnet.tar"})
      if (std::filesystem::exists(data_root / folder / name)) return data_root / folder / name;
  return std::nullopt;
}

TreeData aan_tree() {
  const auto find = [](const std::filesystem::path& root) {
    auto found = find_aan_tsv(root);
    return found ? found : find_scisummnet(root);
  };
  TreeData tree;
  tree.task = "retrieval";
  tree.title = "pairs of papers of the ACL Anthology Network (Long Range Arena's Retrieval)";
  tree.source = "Radev et al. 2013; Tay et al. 2020, github.com/google-research/long-range-arena";
  tree.licence = "of the papers' authors; the stand-in of ScisummNet papers is CC BY 4.0";
  tree.size = fmt::format("{} train, {} validation and {} test pairs, about 1 GB", kAanOfficialPairs[0], kAanOfficialPairs[1],
                          kAanOfficialPairs[2]);
  tree.find = find;
  tree.how_to_get = [](const std::filesystem::path& root) {
    return fmt::format(
        "put new_aan_pairs.train.tsv, .eval.tsv and .test.tsv into '{0}' (in lra_release/lra_release/tsv_data of "
        "https://storage.googleapis.com/long-range-arena/lra_release.gz, 7.7 GB); or, for the option source = \"scisummnet\", the "
        "archive aan_scisummnet.tar.xz",
        (root / "aan").string());
  };
  tree.verify = [find](const std::filesystem::path& root) {
    const auto place = find(root);
    if (!place) throw DataError("no pairs of papers below '{}'", root.string());
    const bool lra = find_aan_tsv(root).has_value();
    const AanData data = lra ? read_aan_tsv(*place) : read_scisummnet(*place);
    bool whole = lra;
    for (size_t k = 0; k < data.pairs.size(); ++k) whole = whole && static_cast<int64_t>(data.pairs[k].size()) == kAanOfficialPairs[k];
    return TreeData::Verdict{whole,
                             fmt::format("{} train, {} validation and {} test pairs of {} texts{}", data.pairs[0].size(),
                                         data.pairs[1].size(), data.pairs[2].size(), data.texts.size(), lra ? "" : ", of the stand-in"),
                             data.data_hash};
  };
  return tree;
}

}  // namespace spt::formats
