#include "harness/cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace spt::cli {
namespace {

using testing::HasSubstr;

struct Answer {
  int code;
  std::string out, err;
};
Answer call(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = run(arguments, out, err);
  return {code, out.str(), err.str()};
}

TEST(Cli, UnknownCommandSuggests) {
  const Answer answer = call({"plna"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("did you mean 'plan'?"));
  EXPECT_EQ(answer.out, "");
}

TEST(Cli, UnknownFlagSuggests) {
  const Answer answer = call({"plan", "--matrx", "quick"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("--matrix"));
}

TEST(Cli, WithoutACommandIsAnError) { EXPECT_EQ(call({}).code, 2); }

TEST(Cli, HelpIsNoError) {
  const Answer answer = call({"--help"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_THAT(answer.out, HasSubstr("plan"));
  EXPECT_EQ(call({"plan", "--help"}).code, 0);
}

TEST(Cli, UnknownMatrixNamesTheShippedOnes) {
  const Answer answer = call({"plan", "--matrix", "quikc"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("'quikc'"));
}

}  // namespace
}  // namespace spt::cli
