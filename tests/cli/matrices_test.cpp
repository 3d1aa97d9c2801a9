#include <gtest/gtest.h>

#include "harness/cli/cli.h"
#include "harness/matrix.h"

namespace spt::cli {
namespace {

TEST(ShippedMatrices, AreValidAndCalledAsTheirFiles) {
  EXPECT_GE(matrix_files().size(), 2u);
  for (const auto& [name, text] : matrix_files()) EXPECT_EQ(parse_matrix(text, std::string(name) + ".toml").name, name);
}

}  // namespace
}  // namespace spt::cli
