#include "tasks/formats/vocabulary.h"

#include <algorithm>

#include "harness/base/error.h"

namespace spt::formats {

Vocabulary::Vocabulary(const std::vector<std::string>& real_tokens) : tokens_{"<mask>", "<pad>", "<unk>", "<eos>"} {
  tokens_.insert(tokens_.end(), real_tokens.begin(), real_tokens.end());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (!ids_.emplace(tokens_[id], static_cast<int64_t>(id)).second) throw Error("vocabulary: the token '{}' is there twice", tokens_[id]);
  }
}

Vocabulary Vocabulary::from_counts(const std::map<std::string, int64_t>& counts, int64_t min_count) {
  std::vector<std::pair<int64_t, std::string>> kept;
  for (const auto& [token, count] : counts) {
    if (count >= min_count) kept.emplace_back(count, token);
  }
  // The map is in byte order, which is code point order in UTF-8: a stable sort leaves ties so.
  std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> tokens;
  for (auto& [count, token] : kept) tokens.push_back(std::move(token));
  return Vocabulary(tokens);
}

int64_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? kUnknownId : found->second;
}

std::vector<int64_t> Vocabulary::encode(std::span<const std::string> tokens, int64_t max_length) const {
  SPT_CHECK(max_length > 0, "max_length is {}", max_length);
  const size_t n = std::min(tokens.size(), static_cast<size_t>(max_length - 1));
  std::vector<int64_t> ids;
  ids.reserve(n + 1);
  for (size_t i = 0; i < n; ++i) ids.push_back(id(tokens[i]));
  ids.push_back(kEosId);
  return ids;
}

}  // namespace spt::formats
