// Pairs of papers: the tab-separated text whole and in pieces, and the three files of a folder.
#include "tasks/formats/aan.h"

#include <unistd.h>

#include <fstream>
#include <vector>

#include "tasks/formats/tsv.h"
#include "tests/fuzz/fuzz.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Rows, or the refusal's text.
std::pair<Rows, std::string> read_in_pieces(std::string_view bytes, size_t piece) {
  constexpr int64_t kLongestField = 1 << 16;
  Rows rows;
  std::string refusal;
  spt::fuzz::accepted([&] {
    try {
      spt::formats::TsvReader reader(spt::fuzz::kWhere, kLongestField, [&](int64_t line, std::span<const std::string> fields) {
        rows.emplace_back(fields.begin(), fields.end());
        rows.back().push_back(std::to_string(line));
      });
      for (size_t at = 0; at < bytes.size(); at += piece) reader.feed(bytes.substr(at, piece));
      reader.finish();
    } catch (const spt::Error& error) {
      refusal = error.what();
      throw;
    }
  });
  return {rows, refusal};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  const std::string_view bytes = fuzz::text(data, size);
  const auto whole = read_in_pieces(bytes, size + 1);
  for (const size_t piece : {1, 2, 7}) fuzz::require(read_in_pieces(bytes, piece) == whole, "the size of the pieces changes nothing");
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("spt-fuzz-aan-{}", ::getpid());
  std::filesystem::create_directories(folder);
  for (const char* split : {"train", "eval", "test"})
    std::ofstream(folder / fmt::format("new_aan_pairs.{}.tsv", split), std::ios::binary) << bytes;
  formats::AanData pairs;
  if (fuzz::accepted([&] { pairs = formats::read_aan_tsv(folder); }, folder.string()))
    for (const auto& split : pairs.pairs)
      for (const auto& pair : split)
        fuzz::require(std::max(pair.first, pair.second) < static_cast<int64_t>(pairs.texts.size()), "a pair's texts are there");
  std::filesystem::remove_all(folder);
  return 0;
}
