#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spt::tasks {

/// How often characters (code points) occur in training texts.
class CharacterCounts {
 public:
  /// Counts each character of `text` `times` over: once for each example that has the text.
  void add(std::u32string_view text, int64_t times = 1);

 private:
  friend class CharacterIds;
  static constexpr char32_t kTable = 256;
  std::array<int64_t, kTable> common_{};
  std::unordered_map<char32_t, int64_t> rare_;
};

/// Ids of characters in the published order (formats::Vocabulary::from_counts).
class CharacterIds {
 public:
  CharacterIds(const CharacterCounts& counts, int64_t min_count);
  int64_t size() const { return size_; }  ///< special tokens included
  /// The characters' ids, then `<eos>`; a character that is not in the vocabulary is `<unk>`.
  std::vector<int64_t> encode(std::u32string_view text) const;

 private:
  std::array<int64_t, CharacterCounts::kTable> common_{};
  std::unordered_map<char32_t, int64_t> rare_;
  int64_t size_ = 0;
};

}  // namespace spt::tasks
