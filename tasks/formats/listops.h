#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/rng.h"

namespace spt::formats {

/// Codes of the tokens of a ListOps expression: 0..9 are the digits themselves.
enum ListopsToken : uint8_t { kListopsMin = 10, kListopsMax, kListopsMed, kListopsSum, kListopsEnd };
inline constexpr int64_t kListopsTokens = 15;

/// How the official files spell a token: `7`, `[MIN`, `[MAX`, `[MED`, `[SM`, `]`.
std::string_view listops_text(uint8_t token);

/// Real tokens of the vocabulary of generated expressions, as listops_tokens() spells them, in an order that no draw can change: `X`, the
/// digits, then `[MAX [MED [MIN [SM`. The code of a token is another thing; its id is listops_vocabulary_id().
const std::vector<std::string>& listops_vocabulary_tokens();
int64_t listops_vocabulary_id(uint8_t token);  ///< special tokens counted: 4..18

/// What expressions a ListOps generator makes; the defaults are those of Long Range Arena.
struct ListopsOptions {
  int64_t max_length = 2000;   ///< tokens; expressions are shorter (so with `<eos>` they fit)
  int64_t min_length = 500;    ///< tokens; expressions are longer
  int64_t max_depth = 10;      ///< levels of the tree, the root is level 1; at this level stand digits only
  int64_t max_arguments = 10;  ///< arguments of an operator, 2..max_arguments
  int64_t seed = 0;            ///< any number >= 0
  void validate() const;       ///< Errors: Error naming the option, its value and what is allowed
};

/// How many expressions each split has; the defaults are those of Long Range Arena.
struct ListopsCounts {
  int64_t train = 96000;
  int64_t validation = 2000;
  int64_t test = 2000;
};

/// Expressions and their values, in one block of memory.
class ListopsExamples {
 public:
  void add(std::span<const uint8_t> tokens, int64_t label);
  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  std::span<const uint8_t> tokens(int64_t i) const;
  int64_t label(int64_t i) const { return labels_[i]; }

 private:
  std::vector<uint8_t> tokens_;
  std::vector<size_t> ends_ = {0};
  std::vector<uint8_t> labels_;
};

/// Appends one random tree to `tokens`, unfiltered: above level max_depth a node is an operator with probability 1/4 (which one, and 2 to
/// max_arguments arguments: uniform), else a digit (uniform). False, and an unfinished tree, as soon as it has max_length tokens.
///
/// Random: one draw a node.
/// Source: google-research/long-range-arena lra_benchmarks/data/listops.py; statistics must match the reference case listops_statistics.
bool draw_listops_tree(const ListopsOptions& options, SplitMix64& generator, std::vector<uint8_t>& tokens);

/// The first `count` expressions of a split ("train", "validation", "test"): trees with min_length < tokens < max_length, each once.
///
/// No expression is in two splits: a hash of its tokens gives it to train (6/8), validation (1/8) or test (1/8), and a split passes over
/// what is not its own and what it has already. So example i depends on the options and on the split's examples before it, never on `count`
/// or on another split. The published generator draws one set and cuts it up; thinning by a hash leaves the distribution as it is, except
/// that of very short expressions, of which there are few, a split can have its eighths only.
///
/// Random: stream "listops/SPLIT" of options.seed, by example.
/// Errors: Error where the options leave too few expressions.
ListopsExamples generate_listops(const ListopsOptions& options, std::string_view split, int64_t count);

/// The text that identifies generated data: version of the generator and everything that its train and validation examples
/// depend on. Its SHA-256 is the data hash. (How many test examples are drawn changes none of them, and stands in the options of a job.)
std::string listops_identity(const ListopsOptions& options, const ListopsCounts& counts);

/// Value of an expression, 0..9. `MED` of an even count is the truncated mean of the two in the middle, `SM` the sum modulo 10.
///
/// Errors: Error for what is no expression. Must equal the recursive twin in tests/formats/listops_test.cpp.
int64_t evaluate_listops(std::span<const uint8_t> tokens);

/// Codes of an expression in text; parentheses are dropped. Errors: Error naming `where` and the token.
std::vector<uint8_t> parse_listops(std::string_view text, std::string_view where);

/// An expression as the official files write it, with parentheses around every binary step.
std::string format_listops(std::span<const uint8_t> tokens);

/// Expressions of a tsv: the official layout (header `Source<TAB>Target`), or, without a header, lines `label<TAB>expression`.
///
/// Errors: Error naming `where` and the line, also where a label is not the expression's value; for an empty file.
ListopsExamples read_listops(std::istream& input, std::string_view where);
ListopsExamples read_listops_file(const std::filesystem::path& file);  ///< Errors: DataError if it is not there

/// Names of the official files, by split.
std::filesystem::path listops_file(const std::filesystem::path& folder, std::string_view split);

/// Generates the three splits into `folder` in the official layout (basic_{train,val,test}.tsv); each file appears whole or not at all.
/// Returns the files. Errors: Error as generate_listops(), and for a folder that cannot be written.
std::array<std::filesystem::path, 3> make_listops_files(const ListopsOptions& options, const ListopsCounts& counts,
                                                        const std::filesystem::path& folder);

}  // namespace spt::formats
