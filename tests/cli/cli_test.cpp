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

TEST(Cli, NumbersThatAreNoneAndEmptyPathsAreRefusedBeforeAnythingStarts) {
  EXPECT_THAT(call({"run", "--matrix", "smoke", "--checkpoint-s", "nan"}).err, HasSubstr("'nan' is not a finite number above 0"));
  EXPECT_THAT(call({"run", "--matrix", "smoke", "--memory-gib", "inf"}).err, HasSubstr("'inf' is not a finite number of at least 0"));
  EXPECT_THAT(call({"run", "--matrix", "smoke", "--max-failures", "-1"}).err, HasSubstr("'-1' is not a finite number of at least 0"));
  EXPECT_THAT(call({"run", "--matrix", "smoke", "--db", ""}).err, HasSubstr("--db: is empty; give a path"));
  EXPECT_THAT(call({"report", "--out", ""}).err, HasSubstr("--out: is empty; give a path"));
}

TEST(Cli, APathThatTheSystemRefusesIsAnErrorAndNoCrash) {
  const std::string longest(5000, 'a');
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"status", "--db", longest}, {"run", "--matrix", longest}, {"data", "list", "--data", longest}}) {
    const auto result = call(arguments);
    EXPECT_EQ(result.code, 2) << arguments[0];
    EXPECT_THAT(result.err, HasSubstr("File name too long")) << arguments[0];
  }
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
