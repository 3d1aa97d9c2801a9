#include <gtest/gtest.h>

#include "harness/base/file.h"
#include "harness/job.h"
#include "harness/matrix.h"

namespace spt {
namespace {

std::string manual() { return read_file(std::filesystem::path(SPT_TEST_DATA).parent_path().parent_path() / "docs" / "matrix.md"); }

TEST(MatrixManual, ItsExampleIsAMatrix) {
  const std::string text = manual(), begin = "```toml\n";
  const size_t at = text.find(begin) + begin.size();
  const Matrix matrix = parse_matrix(text.substr(at, text.find("```", at) - at), "docs/matrix.md");
  EXPECT_EQ(matrix.overrides.size(), 2u);
  EXPECT_EQ(matrix.evaluations, Matrix{}.evaluations) << "the manual calls it the default";
}

TEST(MatrixManual, NamesEveryTrainingValue) {
  const std::string text = manual();
  for (const OptionSchema& option : schema_of<TrainOptions>())
    EXPECT_NE(text.find('`' + option.name + '`'), std::string::npos) << option.name;
}

}  // namespace
}  // namespace spt
