#include "tasks/formats/listops.h"

#include <algorithm>
#include <array>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "tasks/formats/split.h"
#include "tasks/formats/vocabulary.h"
#include "tasks/split_sizes.h"
#include "tasks/task.h"
#include "tasks/token_dataset.h"

namespace spt::tasks {
namespace {

using formats::ListopsCounts;
using formats::ListopsExamples;

struct ListopsTaskOptions {
  std::string source = "generated";
  int64_t max_length = formats::ListopsOptions{}.max_length;
  int64_t min_length = formats::ListopsOptions{}.min_length;
  int64_t max_depth = formats::ListopsOptions{}.max_depth;
  int64_t max_arguments = formats::ListopsOptions{}.max_arguments;
  int64_t generator_seed = formats::ListopsOptions{}.seed;
  int64_t train_examples = ListopsCounts{}.train;
  int64_t validation_examples = ListopsCounts{}.validation;
  int64_t test_examples = ListopsCounts{}.test;
  bool partial = false;
  SubsetOptions subset;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("source", self.source,
          {.effect = "expressions of our generator, or Long Range Arena's files below DATA/listops", .choices = {"generated", "lra"}});
    visit("max_length", self.max_length,
          {.effect = "longest sequence with <eos>: generated expressions are shorter, those of files cut", .min = 2, .unit = "tokens"});
    visit("min_length", self.min_length, {.effect = "generated expressions are longer", .min = 0, .unit = "tokens"});
    visit("max_depth", self.max_depth, {.effect = "levels of a generated tree, the last has digits only", .min = 1, .max = 1000});
    visit("max_arguments", self.max_arguments, {.effect = "most arguments of a generated operator (fewest: 2)", .min = 2, .max = 1e6});
    visit("generator_seed", self.generator_seed, {.effect = "which expressions are generated; not the job's seed", .min = 0});
    visit("train_examples", self.train_examples,
          {.effect = "how many are generated, or a subset of the file's", .min = 1, .max = 10'000'000});
    visit("validation_examples", self.validation_examples,
          {.effect = "how many are generated, or the first of the file", .min = 1, .max = 10'000'000});
    visit("test_examples", self.test_examples,
          {.effect = "how many are generated, or the first of the file", .min = 1, .max = 10'000'000, .stage = "supervised"});
    visit("partial", self.partial, {.effect = "take files without Long Range Arena's 96,000, 2,000 and 2,000 expressions"});
    SubsetOptions::visit(self.subset, visit);
  }

  formats::ListopsOptions generator() const { return {max_length, min_length, max_depth, max_arguments, generator_seed}; }
  ListopsCounts counts() const { return {train_examples, validation_examples, test_examples}; }
  /// `there`: expressions of the train split, generated or in the file.
  int64_t train_size(int64_t there) const {
    return tasks::train_size(subset, train_examples == there ? 0 : train_examples, there, "task listops");
  }

  void validate() const {
    if (source == "generated") {
      generator().validate();
      if (partial) throw Error("task listops: partial goes with source = \"lra\"");
      return;
    }
    const ListopsTaskOptions defaults;
    const auto unused = [](const char* name, int64_t value, int64_t default_value) {
      if (value != default_value) throw Error("task listops: {} = {} goes with source = \"generated\"", name, value);
    };
    unused("min_length", min_length, defaults.min_length);
    unused("max_depth", max_depth, defaults.max_depth);
    unused("max_arguments", max_arguments, defaults.max_arguments);
    unused("generator_seed", generator_seed, defaults.generator_seed);
  }
};

ListopsTaskOptions read_listops_options(const OptionMap& given) {
  const auto options = read_options<ListopsTaskOptions>(given, "task listops");
  options.validate();
  return options;
}

/// Both spell tokens alike, so generated data and files have the same ids.
std::shared_ptr<TokenRows> encode_listops(const ListopsExamples& examples, int64_t max_length) {
  auto rows = std::make_shared<TokenRows>();
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < examples.size(); ++i) {
    ids.clear();
    for (const uint8_t token : examples.tokens(i).first(std::min<size_t>(examples.tokens(i).size(), max_length - 1))) {
      ids.push_back(formats::listops_vocabulary_id(token));
    }
    ids.push_back(formats::kEosId);
    rows->add(ids, examples.label(i));
  }
  return rows;
}

TaskFacts listops_facts(const ListopsTaskOptions& options, const TokenRows& train) {
  TaskFacts facts;
  facts.vocabulary = formats::kSpecialTokens + static_cast<int64_t>(formats::listops_vocabulary_tokens().size());
  facts.max_length = options.max_length;
  facts.train_lengths = length_histogram(train);
  facts.outputs = 10;
  facts.metrics = {{"accuracy", "", true}};
  facts.train_size = options.train_size(train.size());
  facts.validation_size = options.validation_examples;
  facts.test_size = options.test_examples;
  facts.partial = options.partial;
  return facts;
}

TaskFacts generated_listops_facts(const ListopsTaskOptions& options, const TokenRows& train) {
  TaskFacts facts = listops_facts(options, train);
  const std::string identity = formats::listops_identity(options.generator(), options.counts());
  facts.data_hash = sha256(identity);
  facts.data_source = "generated: " + identity;
  return facts;
}

struct ListopsFiles {
  std::array<ListopsExamples, 3> splits;  // train, validation, test
  std::string data_hash;
};

ListopsFiles read_listops_files(const ListopsTaskOptions& options, const std::filesystem::path& data_root) {
  const std::filesystem::path folder = data_root / "listops";
  const std::array<Split, 3> splits = {Split::kTrain, Split::kValidation, Split::kTest};
  const ListopsCounts official;
  const std::array<int64_t, 3> official_sizes = {official.train, official.validation, official.test};
  const std::array<int64_t, 3> wanted = {options.train_examples, options.validation_examples, options.test_examples};
  ListopsFiles files;
  std::string lines;
  for (size_t k = 0; k < splits.size(); ++k) {
    const std::filesystem::path file = formats::listops_file(folder, split_name(splits[k]));
    files.splits[k] = formats::read_listops_file(file);
    const int64_t size = files.splits[k].size();
    if (size != official_sizes[k] && !options.partial) {
      throw DataError("'{}' has {} expressions, not the {} of Long Range Arena; partial = true takes it as it is", file.string(), size,
                      official_sizes[k]);
    }
    if (size < wanted[k]) {
      throw DataError("'{}' has {} expressions; {}_examples = {} asks for more", file.string(), size, split_name(splits[k]), wanted[k]);
    }
    lines += fmt::format("{} {}\n", sha256_file(file), file.filename().string());
  }
  files.data_hash = sha256(lines);
  return files;
}

TaskFacts listops_files_facts(const ListopsTaskOptions& options, const TokenRows& train, const ListopsFiles& files) {
  TaskFacts facts = listops_facts(options, train);
  facts.data_hash = files.data_hash;
  facts.data_source = "basic_{train,val,test}.tsv of Long Range Arena (no official SHA-256 is known to compare with)";
  return facts;
}

TaskFacts facts_of_listops(const OptionMap& given, const std::filesystem::path& data_root) {
  const ListopsTaskOptions options = read_listops_options(given);
  if (options.source == "generated") {
    const auto train = formats::generate_listops(options.generator(), "train", options.train_examples);
    return generated_listops_facts(options, *encode_listops(train, options.max_length));
  }
  const ListopsFiles files = read_listops_files(options, data_root);
  return listops_files_facts(options, *encode_listops(files.splits[0], options.max_length), files);
}

OpenedTask open_generated_listops(const ListopsTaskOptions& options, const Stream& subset) {
  const auto rows = [&](Split split, int64_t n) {
    return encode_listops(formats::generate_listops(options.generator(), split_name(split), n), options.max_length);
  };
  const auto train = rows(Split::kTrain, options.train_examples);
  OpenedTask opened;
  opened.facts = generated_listops_facts(options, *train);
  const std::vector<int64_t> all = all_indices(options.train_examples);
  opened.unlabelled_train = std::make_shared<TokenDataset>(train, all, kFirstTrainId);
  opened.train = std::make_shared<TokenDataset>(train, train_members(options.subset, all, opened.facts.train_size, subset), kFirstTrainId);
  opened.validation = std::make_shared<TokenDataset>(rows(Split::kValidation, options.validation_examples),
                                                     all_indices(options.validation_examples), kFirstValidationId);
  opened.test = std::make_shared<TokenDataset>(rows(Split::kTest, options.test_examples), all_indices(options.test_examples), kFirstTestId);
  opened.notes = {"no expression stands twice, in a split or in two"};
  return opened;
}

OpenedTask open_listops_files(const ListopsTaskOptions& options, const std::filesystem::path& data_root, const Stream& subset) {
  const ListopsFiles files = read_listops_files(options, data_root);
  const auto rows = [&](size_t k) { return encode_listops(files.splits[k], options.max_length); };
  const auto train = rows(0);
  const std::vector<int64_t> all = all_indices(train->size());
  OpenedTask opened;
  opened.facts = listops_files_facts(options, *train, files);
  opened.train = std::make_shared<TokenDataset>(train, train_members(options.subset, all, opened.facts.train_size, subset), kFirstTrainId);
  opened.validation = std::make_shared<TokenDataset>(rows(1), all_indices(options.validation_examples), kFirstValidationId);
  opened.test = std::make_shared<TokenDataset>(rows(2), all_indices(options.test_examples), kFirstTestId);
  opened.unlabelled_train = std::make_shared<TokenDataset>(train, all, kFirstTrainId);
  return opened;
}

}  // namespace

Task listops() {
  Task task;
  task.name = "listops";
  task.version = 1;
  task.summary = "value of a nested expression of MIN, MAX, MED and SM over digits; 10 classes, one token a position";
  task.source = "Nangia and Bowman 2018; Long Range Arena (arXiv:2011.04006) lra_benchmarks/data/listops.py";
  task.options = schema_of<ListopsTaskOptions>();
  task.validate = [](const OptionMap& given) { read_listops_options(given); };
  task.facts = facts_of_listops;
  task.open = [](const OptionMap& given, const std::filesystem::path& data_root, const Stream& subset) {
    const ListopsTaskOptions options = read_listops_options(given);
    return options.source == "generated" ? open_generated_listops(options, subset) : open_listops_files(options, data_root, subset);
  };
  return task;
}

}  // namespace spt::tasks
