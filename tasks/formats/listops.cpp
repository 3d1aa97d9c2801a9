#include "tasks/formats/listops.h"

#include <algorithm>
#include <unordered_set>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

constexpr int64_t kListopsGeneratorVersion = 1;
constexpr int64_t kListopsTreesAnExample = 5'000'000;  // default options need about 16 (train) or 100 (validation, test)
constexpr std::array<std::string_view, kListopsTokens> kListopsSpelling = {"0", "1", "2",    "3",    "4",    "5",   "6", "7",
                                                                           "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

class TreeDraw {
 public:
  TreeDraw(const ListopsOptions& options, SplitMix64& generator, std::vector<uint8_t>& tokens)
      : options_(options), generator_(generator), tokens_(tokens), limit_(tokens.size() + options.max_length) {}

  /// One draw decides all about a node: two bits for its kind, two for the operator, the upper half for the digit or the number of
  /// arguments (whose bias is below 2^-28).
  bool node(int64_t depth) {
    const uint64_t draw = generator_();
    if (depth >= options_.max_depth || (draw & 3) != 0) return put(static_cast<uint8_t>((draw >> 32) * 10 >> 32));
    return put(static_cast<uint8_t>(kListopsMin + (draw >> 2 & 3))) && arguments(draw >> 32, depth + 1) && put(kListopsEnd);
  }

 private:
  bool arguments(uint64_t high, int64_t depth) {
    for (int64_t left = 2 + static_cast<int64_t>(high * static_cast<uint64_t>(options_.max_arguments - 1) >> 32); left > 0; --left) {
      if (!node(depth)) return false;
    }
    return true;
  }
  bool put(uint8_t token) {
    tokens_.push_back(token);
    return tokens_.size() < limit_;
  }
  const ListopsOptions& options_;
  SplitMix64& generator_;
  std::vector<uint8_t>& tokens_;
  size_t limit_;
};

/// 64-bit hash of an expression, 8 tokens at a time.
uint64_t expression_hash(std::span<const uint8_t> tokens) {
  uint64_t hash = tokens.size();
  for (size_t at = 0; at < tokens.size(); at += 8) {
    uint64_t word = 0;
    for (size_t k = at; k < std::min(at + 8, tokens.size()); ++k) word = word << 8 | tokens[k];
    hash = SplitMix64(hash ^ word)();
  }
  return hash;
}

/// Which split an expression belongs to: index into the names of split_names().
size_t owner_of(uint64_t hash) {
  const uint64_t eighth = hash >> 61;
  return eighth < 6 ? 0 : eighth - 5;
}

size_t listops_split_index(std::string_view split) {
  static const std::vector<std::string> kNames = {"train", "validation", "test"};
  const auto found = std::find(kNames.begin(), kNames.end(), split);
  if (found == kNames.end()) throw Error(unknown_name("split", split, kNames));
  return found - kNames.begin();
}

int64_t median_of(std::span<const uint8_t> values) {
  std::array<size_t, 10> count{};
  for (const uint8_t value : values) ++count[value];
  const auto at_rank = [&](size_t rank) {
    int64_t value = 0;
    for (size_t below = count[0]; below <= rank; below += count[++value]) {
    }
    return value;
  };
  return (at_rank((values.size() - 1) / 2) + at_rank(values.size() / 2)) / 2;
}

int64_t apply_operator(uint8_t op, std::span<const uint8_t> values) {
  if (op == kListopsMin) return *std::min_element(values.begin(), values.end());
  if (op == kListopsMax) return *std::max_element(values.begin(), values.end());
  if (op == kListopsMed) return median_of(values);
  int64_t sum = 0;
  for (const uint8_t value : values) sum += value;
  return sum % 10;
}

void check_at_least(std::string_view name, int64_t value, int64_t minimum) {
  if (value < minimum) throw Error("listops: {} is {}; allowed: {} and more", name, value, minimum);
}

}  // namespace

std::string_view listops_text(uint8_t token) {
  SPT_CHECK(token < kListopsTokens, "no ListOps token has code {}", token);
  return kListopsSpelling[token];
}

const std::vector<std::string>& listops_vocabulary_tokens() {
  static const std::vector<std::string> kTokens = {"X", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MAX", "[MED", "[MIN", "[SM"};
  return kTokens;
}

int64_t listops_vocabulary_id(uint8_t token) {
  constexpr std::array<int64_t, kListopsTokens> kIds = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 15, 16, 18, 4};
  SPT_CHECK(token < kListopsTokens, "no ListOps token has code {}", token);
  return kIds[token];
}

void ListopsOptions::validate() const {
  check_at_least("min_length", min_length, 0);
  if (max_length < min_length + 2)
    throw Error(
        "listops: max_length is {}; allowed: {} and more, since expressions are longer than min_length ({}) and shorter than max_length",
        max_length, min_length + 2, min_length);
  check_at_least("max_depth", max_depth, 1);
  check_at_least("max_arguments", max_arguments, 2);
  check_at_least("seed", seed, 0);
  if (max_depth > 1000) throw Error("listops: max_depth is {}; allowed: up to 1000", max_depth);
  if (max_arguments > 1'000'000) throw Error("listops: max_arguments is {}; allowed: up to 1000000", max_arguments);
}

void ListopsExamples::add(std::span<const uint8_t> tokens, int64_t label) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  ends_.push_back(tokens_.size());
  labels_.push_back(static_cast<uint8_t>(label));
}

std::span<const uint8_t> ListopsExamples::tokens(int64_t i) const {
  SPT_CHECK(i >= 0 && i < size(), "example {} of {}", i, size());
  return std::span(tokens_).subspan(ends_[i], ends_[i + 1] - ends_[i]);
}

bool draw_listops_tree(const ListopsOptions& options, SplitMix64& generator, std::vector<uint8_t>& tokens) {
  return TreeDraw(options, generator, tokens).node(1);
}

ListopsExamples generate_listops(const ListopsOptions& options, std::string_view split, int64_t count) {
  options.validate();
  const size_t own = listops_split_index(split);
  const Stream stream(options.seed, fmt::format("listops/{}", split));
  ListopsExamples examples;
  std::unordered_set<uint64_t> seen;  // hashes; two expressions with one hash would only cost a valid candidate
  std::vector<uint8_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    SplitMix64 generator = stream.generator(i);
    for (int64_t tried = 0;; ++tried) {
      if (tried == kListopsTreesAnExample) {
        throw Error("listops: found only {} of {} expressions for the {} split with {} < length < {}, max_depth {}, max_arguments {}", i,
                    count, split, options.min_length, options.max_length, options.max_depth, options.max_arguments);
      }
      tokens.clear();
      if (!draw_listops_tree(options, generator, tokens) || static_cast<int64_t>(tokens.size()) <= options.min_length) continue;
      const uint64_t hash = expression_hash(tokens);
      if (owner_of(hash) == own && seen.insert(hash).second) break;
    }
    examples.add(tokens, evaluate_listops(tokens));
  }
  return examples;
}

std::string listops_identity(const ListopsOptions& options, const ListopsCounts& counts) {
  return fmt::format("spt-listops {} seed={} min_length={} max_length={} max_depth={} max_arguments={} train={} validation={}",
                     kListopsGeneratorVersion, options.seed, options.min_length, options.max_length, options.max_depth,
                     options.max_arguments, counts.train, counts.validation);
}

int64_t evaluate_listops(std::span<const uint8_t> tokens) {
  thread_local std::vector<uint8_t> values;                   // arguments of all open operators
  thread_local std::vector<std::pair<uint8_t, size_t>> open;  // operator, where its arguments begin
  values.clear();
  open.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint8_t token = tokens[i];
    if (i > 0 && open.empty()) throw Error("ListOps: '{}' (token {}) comes after the end of the expression", listops_text(token), i);
    if (token < 10) {
      values.push_back(token);
    } else if (token < kListopsEnd) {
      open.emplace_back(token, values.size());
    } else if (token == kListopsEnd && !open.empty() && open.back().second < values.size()) {
      const auto [op, first] = open.back();
      const int64_t value = apply_operator(op, std::span(values).subspan(first));
      values.resize(first);
      values.push_back(static_cast<uint8_t>(value));
      open.pop_back();
    } else {
      throw Error("ListOps: '{}' (token {}) closes no operator with arguments", listops_text(token), i);
    }
  }
  if (!open.empty() || values.empty()) {
    throw Error("ListOps: the expression ends too early ({} tokens, {} operators open)", tokens.size(), open.size());
  }
  return values.front();
}

}  // namespace spt::formats
