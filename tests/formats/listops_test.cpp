#include "tasks/formats/listops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/json.h"
#include "tasks/formats/tokenize.h"
#include "tasks/formats/vocabulary.h"

namespace spt::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::filesystem::path kCases = std::filesystem::path(SPT_TEST_DATA) / ".." / "reference" / "cases";
const ListopsOptions kShort = {.max_length = 32, .min_length = 3, .max_depth = 4, .max_arguments = 5, .seed = 3};

std::vector<uint8_t> expression(const std::string& text) { return parse_listops(text, "test"); }

std::string plain_text(std::span<const uint8_t> tokens) {
  std::string text;
  for (const uint8_t token : tokens) text += (text.empty() ? "" : " ") + std::string(listops_text(token));
  return text;
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The evaluator's twin: recursive descent over words, median by sorting. It shares nothing with evaluate_listops().
int slow_value(std::istringstream& words) {
  std::string word;
  words >> word;
  if (word.size() == 1 && word != "]") return std::stoi(word);
  std::vector<int> values;
  while ((words >> std::ws).peek() != ']') values.push_back(slow_value(words));
  words.get();
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  if (word == "[MIN") return values.front();
  if (word == "[MAX") return values.back();
  if (word == "[MED") return n % 2 == 1 ? values[n / 2] : static_cast<int>((values[n / 2 - 1] + values[n / 2]) / 2.0);
  return std::accumulate(values.begin(), values.end(), 0) % 10;
}

int slow_value(const std::string& text) {
  std::istringstream words(text);
  return slow_value(words);
}

TEST(ListopsValue, EqualsRecursiveTwinOnRandomTrees) {
  const ListopsOptions options = {.max_length = 100000};
  SplitMix64 generator(5);
  std::vector<uint8_t> tokens;
  for (int i = 0; i < 3000; ++i) {
    tokens.clear();
    ASSERT_TRUE(draw_listops_tree(options, generator, tokens));
    const std::string text = plain_text(tokens);
    ASSERT_EQ(evaluate_listops(tokens), slow_value(text)) << text;
  }
}

TEST(ListopsValue, EqualsPublishedEvaluator) {
  std::istringstream lines(read_file(kCases / "listops_values" / "case.jsonl"));
  std::string line;
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    const auto row = parse_json(line, "case.jsonl");
    EXPECT_EQ(evaluate_listops(expression(row[0])), row[1].get<int64_t>()) << line;
  }
  EXPECT_EQ(rows, 58);
}

TEST(ListopsValue, RefusesWhatIsNoExpression) {
  for (const char* text : {"", "[MIN", "[MIN ]", "]", "[MIN 1 2", "1 2", "[MIN 1 2 ] 3", "[MIN 1 2 ] ]", "[MAX [MIN ] 1 ]"}) {
    EXPECT_THROW(evaluate_listops(expression(text)), Error) << text;
  }
}

TEST(ListopsParse, RefusesUnknownTokens) {
  EXPECT_THAT(error_of([] { parse_listops("[FIRST 1 2 ]", "file, line 7"); }), StartsWith("file, line 7: '[FIRST' is no ListOps token"));
  EXPECT_THROW(expression("10"), Error);
}

TEST(ListopsParse, UndoesOfficialText) {
  const std::string official = "( ( ( ( [MAX 1 ) 5 ) ( ( ( ( [MIN 9 ) 2 ) 5 ) ] ) ) ] )";
  EXPECT_EQ(plain_text(expression(official)), "[MAX 1 5 [MIN 9 2 5 ] ]");
  EXPECT_EQ(format_listops(expression(official)), official);
  EXPECT_EQ(format_listops(expression("7")), "7");
}

TEST(ListopsGenerator, MakesWhatTheOptionsSay) {
  const ListopsExamples examples = generate_listops(kShort, "train", 2000);
  ASSERT_EQ(examples.size(), 2000);
  for (int64_t i = 0; i < examples.size(); ++i) {
    const auto tokens = examples.tokens(i);
    ASSERT_GT(tokens.size(), 3u);
    ASSERT_LT(tokens.size(), 32u);
    ASSERT_EQ(examples.label(i), slow_value(plain_text(tokens)));
    int depth = 0;
    std::vector<int> arguments = {0};
    for (const uint8_t token : tokens) {
      if (token == kListopsEnd) {
        ASSERT_GE(arguments.back(), 2);
        ASSERT_LE(arguments.back(), 5);
        arguments.pop_back();
        continue;
      }
      ++arguments.back();
      if (token >= 10) arguments.push_back(0);
      depth = std::max(depth, static_cast<int>(arguments.size()) - 1);
    }
    ASSERT_LE(depth, 3) << "level 4 holds digits only";
  }
}

TEST(ListopsGenerator, KeepsExamplesWhenMoreAreAskedFor) {
  const ListopsExamples few = generate_listops(kShort, "test", 50);
  const ListopsExamples many = generate_listops(kShort, "test", 500);
  for (int64_t i = 0; i < few.size(); ++i) EXPECT_EQ(plain_text(few.tokens(i)), plain_text(many.tokens(i)));
}

TEST(ListopsGenerator, RepeatsNothingInOrAcrossSplits) {
  std::set<std::string> seen;
  int64_t made = 0;
  for (const char* split : {"train", "validation", "test"}) {
    const ListopsExamples examples = generate_listops(kShort, split, 3000);
    for (int64_t i = 0; i < examples.size(); ++i) seen.insert(plain_text(examples.tokens(i)));
    made += examples.size();
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), made);
}

TEST(ListopsGenerator, DependsOnTheSeed) {
  ListopsOptions other = kShort;
  other.seed = 4;
  const auto first = [](const ListopsOptions& options) { return plain_text(generate_listops(options, "train", 1).tokens(0)); };
  EXPECT_EQ(first(kShort), first(kShort));
  EXPECT_NE(first(kShort), first(other));
}

TEST(ListopsGenerator, KeepsItsNumbers) {
  // The data hash names the generator's version: whoever changes these lines raises kListopsGeneratorVersion.
  const ListopsExamples examples = generate_listops(kShort, "train", 3);
  EXPECT_EQ(plain_text(examples.tokens(0)), "[MAX 3 4 [MED [SM 6 2 1 1 4 ] [MIN 0 9 ] 1 7 0 ] 1 ]");
  EXPECT_EQ(plain_text(examples.tokens(1)), "[SM 6 8 ]");
  EXPECT_EQ(plain_text(examples.tokens(2)), "[MED 1 9 8 ]");
  EXPECT_EQ(listops_identity(kShort, {6000, 500, 2000}),
            "spt-listops 1 seed=3 min_length=3 max_length=32 max_depth=4 max_arguments=5 train=6000 validation=500");
}

TEST(ListopsGenerator, SaysWhenTheOptionsLeaveTooFew) {
  const ListopsOptions tiny = {.max_length = 5, .min_length = 3, .max_depth = 2, .max_arguments = 2};
  EXPECT_EQ(generate_listops(tiny, "train", 200).size(), 200);  // of the 400 there are, about 300 belong to train
  EXPECT_THAT(error_of([&] { generate_listops(tiny, "train", 401); }),
              HasSubstr("of 401 expressions for the train split with 3 < length < 5"));
}

TEST(ListopsGenerator, RefusesImpossibleOptions) {
  EXPECT_THAT(error_of([] { generate_listops({.max_length = 501}, "train", 1); }), HasSubstr("max_length is 501; allowed: 502 and more"));
  EXPECT_THAT(error_of([] { generate_listops({.max_arguments = 1}, "train", 1); }), HasSubstr("max_arguments is 1"));
  EXPECT_THAT(error_of([] { generate_listops({.max_depth = 0}, "train", 1); }), HasSubstr("max_depth is 0"));
  EXPECT_THAT(error_of([] { generate_listops({}, "val", 1); }), HasSubstr("unknown split 'val'"));
}

/// Mean and standard error against the published ones: |difference| <= 4 sqrt(se^2 + s^2), counted over all leaves of a task.
class Comparison {
 public:
  explicit Comparison(const std::string& name) : published_(parse_json(read_file(kCases / name / "stats.json"), name)) {}
  void mean(const std::string& leaf, const std::vector<double>& values) {
    const double n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    compare(leaf, mean, std::sqrt(squares / (n - 1) / n), published_.at(leaf), "mean");
  }
  void share(const std::string& leaf, const std::string& key, double hits, double n) {
    const auto& row = key.empty() ? published_.at(leaf) : published_.at(leaf).at(key);
    compare(leaf + " " + key, hits / n, std::sqrt(hits / n * (1 - hits / n) / n), row, "value");
  }
  ~Comparison() {
    EXPECT_GE(compared_, 30);
    EXPECT_LE(excesses_, 1) << "one may be chance";
  }

 private:
  void compare(const std::string& leaf, double value, double error, const nlohmann::json& row, const char* key) {
    ++compared_;
    const double allowed = 4 * std::hypot(row.at("se").get<double>(), error);
    if (std::abs(value - row.at(key).get<double>()) > allowed) {
      ++excesses_;
      std::printf("%s: %f, published %f, allowed difference %f\n", leaf.c_str(), value, row.at(key).get<double>(), allowed);
    }
  }
  nlohmann::json published_;
  int compared_ = 0;
  int excesses_ = 0;
};

TEST(ListopsGenerator, HasThePublishedDistribution) {
  Comparison comparison("listops_statistics");
  const int64_t n = 8000;
  const ListopsExamples examples = generate_listops({.seed = 1}, "train", n);
  std::vector<double> lengths, operators, arguments;
  std::map<std::string, double> operator_count, root_count, digit_count, label_count;
  double all_operators = 0, all_digits = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto tokens = examples.tokens(i);
    double own_operators = 0, own_elements = -1, depth = 0, open = 0;  // the root is no argument
    for (const uint8_t token : tokens) {
      const std::string text(listops_text(token));
      if (token == kListopsEnd) {
        --open;
        continue;
      }
      ++own_elements;
      if (token < 10) {
        ++digit_count[text];
        ++all_digits;
      } else {
        ++operator_count[text];
        ++own_operators;
        depth = std::max(depth, ++open);
      }
    }
    ASSERT_EQ(depth, 9);
    lengths.push_back(static_cast<double>(tokens.size()));
    operators.push_back(own_operators);
    arguments.push_back(own_elements / own_operators);
    all_operators += own_operators;
    ++root_count[std::string(listops_text(tokens[0]))];
    ++label_count[std::to_string(examples.label(i))];
  }
  comparison.mean("length", lengths);
  comparison.mean("operators_per_expression", operators);
  comparison.mean("mean_arguments_per_operator", arguments);
  for (const char* op : {"[MAX", "[MED", "[MIN", "[SM"}) {
    comparison.share("operator_share", op, operator_count[op], all_operators);
    comparison.share("root_operator_share", op, root_count[op], n);
  }
  for (int digit = 0; digit < 10; ++digit) {
    const std::string text = std::to_string(digit);
    comparison.share("value_token_share", text, digit_count[text], all_digits);
    comparison.share("label_share", text, label_count[text], n);
  }
  double accepted = 0;
  const double trees = 100000;
  SplitMix64 generator(2);
  std::vector<uint8_t> tokens;
  for (int i = 0; i < trees; ++i) {
    tokens.clear();
    accepted += draw_listops_tree({}, generator, tokens) && tokens.size() > 500;
  }
  comparison.share("acceptance", "", accepted, trees);
}

TEST(ListopsFile, ReadsBothLayouts) {
  for (const char* text :
       {"Source\tTarget\n( ( ( [MED 0 ) 1 ) ] )\t0\n5\t5\n", "Source\tTarget\r\n[MED 0 1 ]\t0\r\n5\t5\r\n", "0\t[MED 0 1 ]\n5\t5"}) {
    std::istringstream input(text);
    const ListopsExamples examples = read_listops(input, "x.tsv");
    ASSERT_EQ(examples.size(), 2) << text;
    EXPECT_EQ(plain_text(examples.tokens(0)), "[MED 0 1 ]");
    EXPECT_EQ(examples.label(0), 0);
    EXPECT_EQ(examples.label(1), 5);
  }
}

TEST(ListopsFile, NamesTheLineThatIsWrong) {
  const auto error = [](const std::string& text) {
    return error_of([&] {
      std::istringstream input(text);
      read_listops(input, "x.tsv");
    });
  };
  EXPECT_EQ(error("Source\tTarget\n5\t5\n[MIN 2 3 ]\t3\n"), "x.tsv, line 3: the label is 3, but the expression's value is 2");
  EXPECT_THAT(error("5 5\n"), StartsWith("x.tsv, line 1: expected two fields"));
  EXPECT_THAT(error("5\t5\t5\n"), StartsWith("x.tsv, line 1: expected two fields"));
  EXPECT_THAT(error("10\t5\n"), HasSubstr("the label is '10'"));
  EXPECT_THAT(error("2\t[MIN 2 3\n"), StartsWith("x.tsv, line 1: ListOps: the expression ends too early"));
  EXPECT_THAT(error("Source\tTarget\n"), HasSubstr("no expressions"));
  EXPECT_THAT(error(""), HasSubstr("no expressions"));
  EXPECT_THAT(error("5\t5\n\n5\t5\n"), StartsWith("x.tsv, line 2"));
}

TEST(ListopsFile, MissingOneSaysWhatToRun) {
  EXPECT_THAT(error_of([] { read_listops_file("no/basic_train.tsv"); }), HasSubstr("spt-bench data make listops"));
  EXPECT_THROW(read_listops_file("no/basic_train.tsv"), DataError);
}

TEST(ListopsFile, WritesTheOfficialLayout) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "listops_files";
  std::filesystem::remove_all(folder);
  const auto files = make_listops_files(kShort, {20, 5, 6}, folder);
  EXPECT_EQ(files[1].filename(), "basic_val.tsv");
  EXPECT_THAT(read_file(files[0]), StartsWith("Source\tTarget\r\n( ( "));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3);
  const ListopsExamples read = read_listops_file(listops_file(folder, "test"));
  const ListopsExamples made = generate_listops(kShort, "test", 6);
  ASSERT_EQ(read.size(), 6);
  for (int64_t i = 0; i < read.size(); ++i) EXPECT_EQ(plain_text(read.tokens(i)), plain_text(made.tokens(i)));
  EXPECT_THROW(make_listops_files(kShort, {20, 5, 6}, files[0]), Error) << "a file is no folder";
  EXPECT_EQ(make_listops_files(kShort, {20, 5, 6}, folder), files) << "the same again changes nothing";
  const std::string train = read_file(files[0]);
  EXPECT_THROW(make_listops_files(kShort, {21, 5, 6}, folder), Error) << "nothing is written over";
  EXPECT_EQ(read_file(files[0]), train);
}

TEST(ListopsVocabulary, IdsAreThoseOfTheTokenizersSpelling) {
  const Vocabulary vocabulary(listops_vocabulary_tokens());
  EXPECT_EQ(vocabulary.size(), 19);
  for (uint8_t token = 0; token < kListopsTokens; ++token) {
    const std::vector<std::string> spelled = listops_tokens(listops_text(token));
    ASSERT_EQ(spelled.size(), 1u);
    EXPECT_EQ(vocabulary.id(spelled[0]), listops_vocabulary_id(token));
  }
}

}  // namespace
}  // namespace spt::formats
