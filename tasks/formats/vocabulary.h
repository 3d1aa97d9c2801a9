#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// Ids of the special tokens, the same in every vocabulary.
inline constexpr int64_t kMaskId = 0;
inline constexpr int64_t kPadId = 1;
inline constexpr int64_t kUnknownId = 2;
inline constexpr int64_t kEosId = 3;
inline constexpr int64_t kSpecialTokens = 4;

/// Tokens and their ids: `<mask>` 0, `<pad>` 1, `<unk>` 2, `<eos>` 3, then the real tokens.
///
/// Source: arXiv:2310.02980 and its code; must equal the reference cases tokenizer_*.
class Vocabulary {
 public:
  /// Real tokens in the order of their ids. Errors: Error if one stands twice or is spelled like a special one.
  explicit Vocabulary(const std::vector<std::string>& real_tokens);

  /// Real tokens by falling count, ties by code point; those with a count below `min_count` are left out.
  static Vocabulary from_counts(const std::map<std::string, int64_t>& counts, int64_t min_count);

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }  ///< special tokens included
  int64_t id(std::string_view token) const;                              ///< kUnknownId if it is not in
  const std::vector<std::string>& tokens() const { return tokens_; }     ///< by id, special tokens first

  /// Ids of the first `max_length` - 1 tokens, then `<eos>`. Errors: SPT_CHECK that max_length > 0.
  std::vector<int64_t> encode(std::span<const std::string> tokens, int64_t max_length) const;

 private:
  std::vector<std::string> tokens_;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace spt::formats
