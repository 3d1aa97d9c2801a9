// Archives of reviews (tar, gz, xz, zip), and the characters that become a vocabulary.
#include "tasks/formats/imdb.h"

#include <map>

#include "tasks/formats/tokenize.h"
#include "tasks/formats/vocabulary.h"
#include "tests/fuzz/fuzz.h"

namespace {

void count_characters(const std::string& review, std::map<std::string, int64_t>& counts) {
  std::u32string points;
  if (!spt::fuzz::accepted([&] { points = spt::formats::code_points(review, spt::fuzz::kWhere); })) return;
  std::string again;
  for (const char32_t point : points) again += spt::formats::to_utf8(point), ++counts[spt::formats::to_utf8(point)];
  spt::fuzz::require(again == review, "characters are the bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const fuzz::InputFile file(fuzz::text(data, size));
  formats::ImdbData reviews;
  if (!fuzz::accepted([&] { reviews = formats::read_imdb_archive(file.path()); }, file.path().string())) return 0;
  std::map<std::string, int64_t> counts;
  for (const auto& review : reviews.train) count_characters(review.text, counts);
  for (const auto& review : reviews.test) count_characters(review.text, counts);
  const formats::Vocabulary vocabulary = formats::Vocabulary::from_counts(counts, 1);
  for (const auto& [character, count] : counts)
    fuzz::require(vocabulary.id(character) >= formats::kSpecialTokens, "what was counted has an id");
  return 0;
}
