#include "tasks/characters.h"

#include <map>
#include <string>

#include "tasks/formats/tokenize.h"
#include "tasks/formats/vocabulary.h"

namespace spt::tasks {

void CharacterCounts::add(std::u32string_view text, int64_t times) {
  for (const char32_t c : text) (c < kTable ? common_[c] : rare_[c]) += times;
}

CharacterIds::CharacterIds(const CharacterCounts& counts, int64_t min_count) {
  std::map<std::string, int64_t> by_token;
  for (const auto& [c, count] : counts.rare_) by_token[formats::to_utf8(c)] = count;
  for (char32_t c = 0; c < CharacterCounts::kTable; ++c)
    if (counts.common_[c] > 0) by_token[formats::to_utf8(c)] = counts.common_[c];
  const auto vocabulary = formats::Vocabulary::from_counts(by_token, min_count);
  size_ = vocabulary.size();
  for (char32_t c = 0; c < CharacterCounts::kTable; ++c) common_[c] = vocabulary.id(formats::to_utf8(c));
  for (const auto& [c, count] : counts.rare_) rare_[c] = vocabulary.id(formats::to_utf8(c));
}

std::vector<int64_t> CharacterIds::encode(std::u32string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size() + 1);
  for (const char32_t c : text) {
    if (c < CharacterCounts::kTable) {
      ids.push_back(common_[c]);
    } else {
      const auto found = rare_.find(c);
      ids.push_back(found == rare_.end() ? formats::kUnknownId : found->second);
    }
  }
  ids.push_back(formats::kEosId);
  return ids;
}

}  // namespace spt::tasks
