#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "harness/base/error.h"
#include "tasks/characters.h"
#include "tasks/formats/imdb.h"
#include "tasks/formats/split.h"
#include "tasks/formats/tokenize.h"
#include "tasks/formats/vocabulary.h"
#include "tasks/imdb_official.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/token_dataset.h"

namespace spt::tasks {
namespace {

constexpr int64_t kImdbExamples = 25000;  // of the official train and test sets
constexpr int64_t kByteValues = 256;

struct TextOptions {
  std::string tokens = "characters";
  int64_t max_length = 4096;
  int64_t min_freq = 15;
  int64_t validation_examples = 2500;
  int64_t train_examples = 0;
  int64_t test_examples = 0;
  int64_t split_seed = 42;
  bool partial = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("tokens", self.tokens,
          {.effect = "one character a position, with a vocabulary counted in train, or one byte, with a vocabulary of all 256",
           .choices = {"bytes", "characters"}});
    visit("max_length", self.max_length, {.effect = "reviews are cut so that they fit with <eos>", .min = 2, .unit = "tokens"});
    visit("min_freq", self.min_freq,
          {.effect = "rarer characters of the official train set become <unk>; counted in cut reviews", .min = 1, .unit = "occurrences"});
    visit("validation_examples", self.validation_examples, {.effect = "carved out of train by split_seed, stratified", .min = 2});
    visit("train_examples", self.train_examples, {.effect = "a subset, nested; 0: all that validation leaves", .min = 0});
    visit("test_examples", self.test_examples, {.effect = "a subset by split_seed, stratified; 0: all", .min = 0, .stage = "supervised"});
    visit("split_seed", self.split_seed, {.effect = "which reviews are validation", .min = 0});
    visit("partial", self.partial, {.effect = "take reviews that are not the official 25,000 and 25,000"});
    SubsetOptions::visit(self.subset, visit);
  }

  void validate() const {
    if (tokens == "bytes" && min_freq != TextOptions{}.min_freq)
      throw Error("task text: min_freq = {} goes with tokens = \"characters\"", min_freq);
  }
};

TextOptions read_text_options(const OptionMap& given) {
  const auto options = read_options<TextOptions>(given, "task text");
  options.validate();
  return options;
}

struct TextSizes {
  int64_t train, validation, test;
};

/// 0 resolved. Errors: Error where there are not so many reviews.
TextSizes text_sizes(const TextOptions& options, int64_t train, int64_t test) {
  const int64_t left = train - options.validation_examples;
  if (left < 1 || options.train_examples > left || options.test_examples > test) {
    throw Error("task text: {} train and {} test reviews are too few for validation_examples {}, train_examples {} and test_examples {}",
                train, test, options.validation_examples, options.train_examples, options.test_examples);
  }
  return {train_size(options.subset, options.train_examples, left, "task text"), options.validation_examples,
          options.test_examples > 0 ? options.test_examples : test};
}

/// A review's characters, cut to max_length - 1. They are decoded each time: kept, they would take four bytes each.
std::u32string characters_of(const formats::Review& review, std::string_view split, int64_t max_length) {
  std::u32string text = formats::code_points(review.text, formats::review_name(split, review));
  if (static_cast<int64_t>(text.size()) >= max_length) text.resize(static_cast<size_t>(max_length - 1));
  return text;
}

/// A review's bytes as ids, in the order of their values, cut so that `<eos>` fits.
std::vector<int64_t> byte_ids(const formats::Review& review, int64_t max_length) {
  const std::string_view text = std::string_view(review.text).substr(0, static_cast<size_t>(max_length - 1));
  std::vector<int64_t> ids;
  ids.reserve(text.size() + 1);
  for (const char byte : text) ids.push_back(formats::kSpecialTokens + static_cast<unsigned char>(byte));
  ids.push_back(formats::kEosId);
  return ids;
}

template <class Encode>
std::shared_ptr<TokenRows> encode_reviews(const std::vector<formats::Review>& reviews, int64_t max_length, Encode&& encode) {
  auto rows = std::make_shared<TokenRows>();
  size_t tokens = 0;  // at most: a character has a byte or more
  for (const formats::Review& review : reviews) tokens += std::min(review.text.size() + 1, static_cast<size_t>(max_length));
  rows->reserve(tokens, reviews.size());
  for (const formats::Review& review : reviews) rows->add(encode(review), review.label);
  return rows;
}

TaskFacts text_facts(const TextOptions& options, const TextSizes& sizes) {
  TaskFacts facts;
  facts.max_length = options.max_length;
  facts.outputs = 2;
  facts.metrics = {{"accuracy", "", true}};
  facts.train_size = sizes.train;
  facts.validation_size = sizes.validation;
  facts.test_size = sizes.test;
  facts.data_source = "Large Movie Review Dataset v1.0 (Maas et al. 2011), labelled reviews as " + options.tokens;
  facts.partial = options.partial;
  return facts;
}

formats::ImdbData load_text(const TextOptions& options, const std::filesystem::path& data_root) {
  formats::ImdbData data = formats::load_imdb(data_root);
  if (data.data_hash != formats::kImdbOfficialHash && !options.partial) {
    throw DataError("the reviews below '{}' are not the official ones ({} train, {} test, hash {}); partial = true takes them as they are",
                    data_root.string(), data.train.size(), data.test.size(), data.data_hash.substr(0, 16));
  }
  return data;
}

/// Everything that opening needs and facts are made of.
struct EncodedText {
  std::shared_ptr<const TokenRows> train, test;
  TaskFacts facts;
};

EncodedText encode_text(const TextOptions& options, const formats::ImdbData& data) {
  EncodedText encoded;
  int64_t vocabulary = formats::kSpecialTokens + kByteValues;
  if (options.tokens == "bytes") {
    const auto encode = [&](const formats::Review& review) { return byte_ids(review, options.max_length); };
    encoded.train = encode_reviews(data.train, options.max_length, encode);
    encoded.test = encode_reviews(data.test, options.max_length, encode);
  } else {
    CharacterCounts counts;
    for (const formats::Review& review : data.train) counts.add(characters_of(review, "train", options.max_length));
    const CharacterIds ids(counts, options.min_freq);
    const auto encode = [&](std::string_view split) {
      return [&, split](const formats::Review& review) { return ids.encode(characters_of(review, split, options.max_length)); };
    };
    encoded.train = encode_reviews(data.train, options.max_length, encode("train"));
    encoded.test = encode_reviews(data.test, options.max_length, encode("test"));
    vocabulary = ids.size();
  }
  encoded.facts = text_facts(options, text_sizes(options, encoded.train->size(), encoded.test->size()));
  encoded.facts.vocabulary = vocabulary;
  encoded.facts.train_lengths = length_histogram(*encoded.train);
  encoded.facts.data_hash = data.data_hash;
  return encoded;
}

/// Lengths are those of the whole train set, before validation and subsets are taken from it: what a random part of it has on average. The
/// official set's facts are compiled in, so that planning neither needs nor reads it.
TaskFacts facts_of_text(const OptionMap& given, const std::filesystem::path& data_root) {
  const TextOptions options = read_text_options(given);
  const auto vocabulary = official_imdb_vocabulary(options.max_length);
  if (options.partial || !vocabulary || options.min_freq != TextOptions{}.min_freq || options.tokens != TextOptions{}.tokens) {
    if (!options.partial && !formats::find_imdb(data_root)) {
      throw DataError(
          "task text: vocabulary and lengths for tokens = \"{}\", max_length = {}, min_freq = {} are counted in the reviews, and there are "
          "none "
          "below '{}'; without them they are known for characters, max_length = 1024, 2048 and 4096 and min_freq = {}. {}",
          options.tokens, options.max_length, options.min_freq, data_root.string(), TextOptions{}.min_freq,
          formats::how_to_get_imdb(data_root));
    }
    return encode_text(options, load_text(options, data_root)).facts;
  }
  TaskFacts facts = text_facts(options, text_sizes(options, kImdbExamples, kImdbExamples));
  facts.vocabulary = *vocabulary;
  facts.train_lengths = official_imdb_lengths(options.max_length);
  facts.data_hash = formats::kImdbOfficialHash;
  return facts;
}

int64_t texts_in_both(const std::vector<formats::Review>& a, const std::vector<int64_t>& of_a, const std::vector<formats::Review>& b,
                      const std::vector<int64_t>& of_b) {
  std::unordered_set<std::string_view> texts;
  for (const int64_t i : of_a) texts.insert(a[i].text);
  return std::count_if(of_b.begin(), of_b.end(), [&](int64_t i) { return texts.contains(b[i].text); });
}

OpenedTask open_text(const OptionMap& given, const std::filesystem::path& data_root, const Stream& subset) {
  const TextOptions options = read_text_options(given);
  const formats::ImdbData data = load_text(options, data_root);
  const EncodedText encoded = encode_text(options, data);
  const auto stratified = [&](const std::vector<formats::Review>& reviews, int64_t n) {
    std::vector<uint8_t> labels;
    for (const formats::Review& review : reviews) labels.push_back(static_cast<uint8_t>(review.label));
    return formats::stratified_split(labels, n, options.split_seed);
  };
  const formats::TwoSplits carved = stratified(data.train, options.validation_examples);
  const std::vector<int64_t> test = stratified(data.test, encoded.facts.test_size).validation;

  OpenedTask opened;
  opened.facts = encoded.facts;
  opened.train = std::make_shared<TokenDataset>(
      encoded.train, train_members(options.subset, carved.train, encoded.facts.train_size, subset), kFirstTrainId);
  opened.unlabelled_train = std::make_shared<TokenDataset>(encoded.train, carved.train, kFirstTrainId);
  // Validation reviews are rows of the official train set, so their ids differ from those of train as they are.
  opened.validation = std::make_shared<TokenDataset>(encoded.train, carved.validation, kFirstTrainId);
  opened.test = std::make_shared<TokenDataset>(encoded.test, test, kFirstTestId);
  const int64_t leaked_test = texts_in_both(data.train, carved.train, data.test, test);
  const int64_t leaked_validation = texts_in_both(data.train, carved.train, data.train, carved.validation);
  opened.notes = {fmt::format("{} test reviews have the text of a train review", leaked_test),
                  fmt::format("{} validation reviews have the text of a train review", leaked_validation)};
  if (options.tokens == "characters")
    opened.notes.push_back("the vocabulary is counted in the whole official train set, validation's characters included");
  return opened;
}

}  // namespace

Task text() {
  Task task;
  task.name = "text";
  task.version = 1;
  task.summary = "sentiment of a movie review, one character (or byte) a position; 2 classes";
  task.source = "Maas et al. 2011, Large Movie Review Dataset; Long Range Arena (arXiv:2011.04006) \"Text\"";
  task.leaks =
      "123 of the 25,000 test reviews have the text of a train review; 96 of train are copies of others, so that validation can share them";
  task.options = schema_of<TextOptions>();
  task.validate = [](const OptionMap& given) { read_text_options(given); };
  task.facts = facts_of_text;
  task.open = open_text;
  return task;
}

}  // namespace spt::tasks
