#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tasks/formats/compressed.h"
#include "tasks/formats/listops.h"

namespace spt::formats {
namespace {

TEST(DataListops, EvaluatesAndRewritesTheTenThousandRealLines) {
  const char* root = std::getenv("SPT_DATA");
  if (root == nullptr) GTEST_SKIP() << "SPT_DATA does not say where the data are";
  const std::filesystem::path file = std::filesystem::path(root) / "listops" / "test_d20s.tsv.xz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
  const std::string content = read_unpacked(file, 1 << 30);
  std::istringstream input(content);
  const ListopsExamples examples = read_listops(input, file.string());  // checks every label
  ASSERT_EQ(examples.size(), 10000);
  std::istringstream lines(content);
  std::string line;
  for (int64_t i = 0; std::getline(lines, line); ++i) {
    ASSERT_EQ(line, fmt::format("{}\t{}", examples.label(i), format_listops(examples.tokens(i))));
  }
}

}  // namespace
}  // namespace spt::formats
