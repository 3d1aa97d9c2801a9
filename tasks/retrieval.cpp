#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "tasks/characters.h"
#include "tasks/formats/aan.h"
#include "tasks/formats/split.h"
#include "tasks/formats/tokenize.h"
#include "tasks/pair_dataset.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"

namespace spt::tasks {
namespace {

struct RetrievalOptions {
  std::string source = "lra";
  int64_t max_length = 4000;
  int64_t min_freq = 1;
  int64_t train_examples = 0;
  int64_t validation_examples = 0;
  int64_t test_examples = 0;
  int64_t split_seed = 42;
  bool partial = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("source", self.source,
          {.effect =
               "Long Range Arena's pairs, or a small stand-in from papers of ScisummNet, whose numbers do not compare with the former's",
           .choices = {"lra", "scisummnet"}});
    visit("max_length", self.max_length, {.effect = "each document is cut so that it fits with <eos>", .min = 2, .unit = "characters"});
    visit("min_freq", self.min_freq,
          {.effect = "rarer characters of the train pairs become <unk>; counted in cut texts", .min = 1, .unit = "occurrences"});
    visit("train_examples", self.train_examples, {.effect = "a subset of pairs, nested; 0: all", .min = 0});
    visit("validation_examples", self.validation_examples, {.effect = "a subset by split_seed, stratified; 0: all", .min = 0});
    visit("test_examples", self.test_examples, {.effect = "a subset by split_seed, stratified; 0: all", .min = 0, .stage = "supervised"});
    visit("split_seed", self.split_seed, {.effect = "which pairs those subsets have; the splits are the files'", .min = 0});
    visit("partial", self.partial, {.effect = "take pairs that are not the official ones"});
    SubsetOptions::visit(self.subset, visit);
  }
};

RetrievalOptions read_retrieval_options(const OptionMap& given) { return read_options<RetrievalOptions>(given, "task retrieval"); }

constexpr std::array<Split, 3> kPairSplits = {Split::kTrain, Split::kValidation, Split::kTest};

formats::AanData load_retrieval(const RetrievalOptions& options, const std::filesystem::path& data_root) {
  const bool lra = options.source == "lra";
  const auto place = lra ? formats::find_aan_tsv(data_root) : formats::find_scisummnet(data_root);
  if (!place)
    throw DataError("task retrieval: source = \"{}\", and its pairs are not below '{}'; {}", options.source, data_root.string(),
                    formats::aan_tree().how_to_get(data_root));
  formats::AanData data = lra ? formats::read_aan_tsv(*place) : formats::read_scisummnet(*place);
  if (options.partial) return data;
  if (!lra && data.data_hash != formats::kScisummnetHash)
    throw DataError("'{}' is not the known stand-in (hash {}); partial = true takes it as it is", place->string(),
                    data.data_hash.substr(0, 16));
  for (size_t k = 0; lra && k < data.pairs.size(); ++k)
    if (static_cast<int64_t>(data.pairs[k].size()) != formats::kAanOfficialPairs[k])
      throw DataError("'{}' has {} {} pairs, not the {} of Long Range Arena; partial = true takes them as they are", place->string(),
                      data.pairs[k].size(), split_name(kPairSplits[k]), formats::kAanOfficialPairs[k]);
  return data;
}

/// Texts as ids, and the facts that follow.
struct EncodedPairs {
  std::shared_ptr<const TokenRows> texts;
  std::array<std::shared_ptr<const std::vector<DocumentPair>>, 3> pairs;
  TaskFacts facts;
};

std::vector<std::u32string> cut_texts(const formats::AanData& data, int64_t max_length) {
  std::vector<std::u32string> texts;
  for (const std::string& text : data.texts) {
    texts.push_back(formats::code_points(text, "a paper"));
    if (static_cast<int64_t>(texts.back().size()) >= max_length) texts.back().resize(static_cast<size_t>(max_length - 1));
    texts.back().shrink_to_fit();
  }
  return texts;
}

EncodedPairs encode_pairs(const RetrievalOptions& options, const formats::AanData& data) {
  const std::vector<std::u32string> texts = cut_texts(data, options.max_length);
  std::vector<int64_t> uses(texts.size());  // in train: a text counts once for each pair that has it
  for (const formats::AanPair& pair : data.pairs[0]) {
    ++uses[static_cast<size_t>(pair.first)];
    ++uses[static_cast<size_t>(pair.second)];
  }
  CharacterCounts counts;
  std::map<int64_t, int64_t> lengths;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (uses[i] == 0) continue;
    counts.add(texts[i], uses[i]);
    lengths[static_cast<int64_t>(texts[i].size()) + 1] += uses[i];
  }
  const CharacterIds ids(counts, options.min_freq);
  auto rows = std::make_shared<TokenRows>();
  for (const std::u32string& text : texts) rows->add(ids.encode(text), 0);

  EncodedPairs encoded;
  encoded.texts = rows;
  for (size_t k = 0; k < data.pairs.size(); ++k) {
    auto pairs = std::make_shared<std::vector<DocumentPair>>();
    for (const formats::AanPair& pair : data.pairs[k]) pairs->push_back({pair.first, pair.second, pair.label});
    encoded.pairs[k] = std::move(pairs);
  }
  TaskFacts& facts = encoded.facts;
  SplitSizes there{};
  for (size_t k = 0; k < there.size(); ++k) there[k] = static_cast<int64_t>(data.pairs[k].size());
  const SplitSizes sizes =
      examples_asked({options.train_examples, options.validation_examples, options.test_examples}, there, "task retrieval", options.subset);
  facts.vocabulary = ids.size();
  facts.max_length = options.max_length;
  facts.train_lengths.assign(lengths.begin(), lengths.end());
  facts.outputs = 2;
  facts.documents = 2;
  facts.metrics = {{"accuracy", "", true}};
  facts.train_size = sizes[0];
  facts.validation_size = sizes[1];
  facts.test_size = sizes[2];
  facts.data_hash = data.data_hash;
  facts.data_source = options.source == "lra"
                          ? "new_aan_pairs.{train,eval,test}.tsv of Long Range Arena (no official SHA-256 is known to compare with)"
                          : "citations between 978 papers of ScisummNet (Yasunaga et al. 2019), a stand-in for Long Range Arena's pairs";
  facts.partial = options.partial;
  return encoded;
}

/// n of a split's pairs, with the shares of the classes kept; the same for every seed of a job.
std::vector<int64_t> stratified_pairs(const std::vector<DocumentPair>& pairs, int64_t n, int64_t split_seed) {
  std::vector<uint8_t> labels;
  for (const DocumentPair& pair : pairs) labels.push_back(static_cast<uint8_t>(pair.label));
  return formats::stratified_split(labels, n, static_cast<uint64_t>(split_seed)).validation;
}

/// What two splits share: pairs that are in both, and texts.
std::string retrieval_leaks(const std::vector<DocumentPair>& train, const std::vector<DocumentPair>& other, Split split) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  std::set<int64_t> texts;
  for (const DocumentPair& pair : train) {
    pairs.insert({pair.first, pair.second});
    texts.insert({pair.first, pair.second});
  }
  const auto in_both =
      std::count_if(other.begin(), other.end(), [&](const DocumentPair& p) { return pairs.contains({p.first, p.second}); });
  const auto known =
      std::count_if(other.begin(), other.end(), [&](const DocumentPair& p) { return texts.contains(p.first) && texts.contains(p.second); });
  return fmt::format("{} of {} {} pairs are train pairs too, of {} both texts stand in train", in_both, other.size(), split_name(split),
                     known);
}

OpenedTask open_retrieval(const OptionMap& given, const std::filesystem::path& data_root, const Stream& subset) {
  const RetrievalOptions options = read_retrieval_options(given);
  const EncodedPairs encoded = encode_pairs(options, load_retrieval(options, data_root));
  const std::vector<int64_t> all = all_indices(static_cast<int64_t>(encoded.pairs[0]->size()));
  const auto dataset = [&](size_t k, std::vector<int64_t> order, int64_t first_id) {
    return std::make_shared<PairDataset>(encoded.texts, encoded.pairs[k], std::move(order), first_id);
  };
  OpenedTask opened;
  opened.facts = encoded.facts;
  opened.train = dataset(0, train_members(options.subset, all, encoded.facts.train_size, subset), kFirstTrainId);
  opened.unlabelled_train = dataset(0, all, kFirstTrainId);
  opened.validation =
      dataset(1, stratified_pairs(*encoded.pairs[1], encoded.facts.validation_size, options.split_seed), kFirstValidationId);
  opened.test = dataset(2, stratified_pairs(*encoded.pairs[2], encoded.facts.test_size, options.split_seed), kFirstTestId);
  opened.notes = {retrieval_leaks(*encoded.pairs[0], *encoded.pairs[1], Split::kValidation),
                  retrieval_leaks(*encoded.pairs[0], *encoded.pairs[2], Split::kTest)};
  return opened;
}

}  // namespace

/// Long Range Arena's Retrieval: does one paper cite another, from the characters of both. documents = 2: supervised stages get a retrieval
/// head
/// ([a, b, a - b, a b] of the pooled documents); in pretraining each document is a sequence of its own.
Task retrieval() {
  Task task;
  task.name = "retrieval";
  task.version = 1;
  task.summary = "does one paper cite the other, two documents of one character a position; 2 classes (Long Range Arena's Retrieval)";
  task.source = "ACL Anthology Network (Radev et al. 2013); Long Range Arena (arXiv:2011.04006) \"Retrieval\"";
  task.leaks = "papers stand in pairs of all splits; pairs only where the files of Long Range Arena have them twice";
  task.options = schema_of<RetrievalOptions>();
  task.facts = [](const OptionMap& given, const std::filesystem::path& data_root) {
    const RetrievalOptions options = read_retrieval_options(given);
    return encode_pairs(options, load_retrieval(options, data_root)).facts;
  };
  task.open = open_retrieval;
  return task;
}

}  // namespace spt::tasks
