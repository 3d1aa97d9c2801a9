#include "harness/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "harness/base/error.h"

namespace spt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kFull = R"(name = "quick"
profile = "fair"
seeds = [1, 2, 3]
reference = "b"
protocols = ["scratch", "spt-masked"]
[budget]
finetune = { steps = 400 }
pretrain = { steps = 1200 }
match = ["steps", "flops"]
evaluations = 10
[train]
lr = 0.002
batch = 16
[stage.pretrain]
lr = 0.001
[stage.finetune]
dropout = 0.1
[[architecture]]
name = "transformer"
size = "100K"
[[architecture]]
name = "transformer"
label = "b"
options = { n_layers = 2 }
[[task]]
name = "fashion"
options = { patch = 4 }
[[override]]
architecture = "b"
task = "fashion"
protocol = "spt-masked"
stage = "pretrain"
train = { lr = 1 }
[[override]]
task = "fashion"
budget = { finetune = { epochs = 1.5 }, pretrain = { share = 0.5 } }
[streams]
init = 7
[analysis]
margin = 0.02
planned_n = 3
)";

std::string error_of(const std::string& text) {
  try {
    parse_matrix(text, "m.toml");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Matrix, ReadsEveryKey) {
  const Matrix m = parse_matrix(kFull, "m.toml");
  EXPECT_EQ(m.name, "quick");
  EXPECT_EQ(m.seeds, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(m.reference, "b");
  ASSERT_EQ(m.protocols.size(), 2u);
  EXPECT_EQ(m.protocols[1].label, "spt-masked");
  EXPECT_EQ(m.budgets.finetune->amount, 400);
  EXPECT_EQ(m.budgets.pretrain->origin, "m.toml:8:14 [budget]");
  EXPECT_EQ(m.match, (std::vector<Basis>{Basis::kSteps, Basis::kFlops}));
  EXPECT_EQ(m.evaluations, 10);
  EXPECT_EQ(m.train.at("lr").value, OptionValue(0.002));
  EXPECT_EQ(m.stages.at("finetune").at("dropout").value, OptionValue(0.1));
  EXPECT_EQ(m.architectures[0].size, "100K");
  EXPECT_EQ(m.architectures[1].options.at("n_layers").value, OptionValue(int64_t{2}));
  ASSERT_EQ(m.overrides.size(), 2u);
  EXPECT_EQ(m.overrides[0].train.at("lr").value, OptionValue(1.0)) << "an integer is taken where a float is wanted";
  EXPECT_EQ(m.overrides[0].specificity(), 4);
  EXPECT_EQ(m.overrides[1].budget.finetune->unit, BudgetUnit::kEpochs);
  EXPECT_EQ(std::get<double>(m.overrides[1].budget.share->value), 0.5);
  EXPECT_EQ(m.streams.at("init"), 7u);
  EXPECT_EQ(m.margin, 0.02);
}

TEST(Matrix, DefaultsAreTheOnesOfTheManual) {
  const Matrix m = parse_matrix(
      "name='n'\nseeds={first=3,count=2}\nprotocols=['scratch']\nbudget={finetune={steps=1}}\n[[architecture]]\nname='a'\n[[task]]\nname='"
      "t'\n",
      "m.toml");
  EXPECT_EQ(m.seeds, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(m.reference, "a");
  EXPECT_EQ(m.evaluations, 20);
  EXPECT_EQ(m.match, (std::vector<Basis>{Basis::kSteps}));
  EXPECT_FALSE(m.total_mode());
}

// Every key of the full file, misspelt in turn: always refused, at its place, and with the right key as a suggestion.
TEST(Matrix, EveryKeyMisspeltIsRefusedWithASuggestion) {
  const std::regex key("(^|[{,] ?)([a-z_]+)( = )");
  const std::set<std::string> free = {"n_layers", "patch"};  // options of components are the catalog's to check
  int checked = 0, line = 0;
  std::istringstream lines(kFull);
  size_t line_start = 0;
  for (std::string text; std::getline(lines, text); line_start += text.size() + 1) {
    ++line;
    for (std::sregex_iterator it(text.begin(), text.end(), key), end; it != end; ++it) {
      const std::string name = (*it)[2];
      if (free.contains(name)) continue;
      std::string spoilt = kFull;
      spoilt.insert(line_start + static_cast<size_t>(it->position(2)) + name.size() - 1, "x");
      const std::string message = error_of(spoilt);
      EXPECT_THAT(message, StartsWith("m.toml:" + std::to_string(line) + ":")) << name;
      EXPECT_THAT(message, HasSubstr("did you mean '" + name + "'")) << name;
      ++checked;
    }
  }
  EXPECT_GE(checked, 35);
}

TEST(Matrix, EverySectionMisspeltIsRefusedWithASuggestion) {
  for (const char* section : {"budget", "train", "stage", "architecture", "task", "override", "streams", "analysis"}) {
    const std::string wrong = std::regex_replace(kFull, std::regex(std::string("\\[") + section), std::string("[") + section + "z");
    EXPECT_THAT(error_of(wrong), HasSubstr(std::string("did you mean '") + section + "'")) << section;
  }
}

// Every value of the full file, replaced by one of another type.
TEST(Matrix, EveryWrongTypeIsRefused) {
  const std::regex value("(^|[{,] ?)([a-z_]+) = (\"[^\"]*\"|[0-9.]+|\\[[^\\]]*\\])");
  const std::set<std::string> free = {"n_layers", "patch"};
  int checked = 0, line = 0;
  std::istringstream lines(kFull);
  size_t line_start = 0;
  for (std::string text; std::getline(lines, text); line_start += text.size() + 1) {
    ++line;
    for (std::sregex_iterator it(text.begin(), text.end(), value), end; it != end; ++it) {
      if (free.contains((*it)[2])) continue;
      for (const std::string other : {"true", "{ zzz = 1 }", "[[1]]"}) {
        std::string spoilt = kFull;
        spoilt.replace(line_start + static_cast<size_t>(it->position(3)), static_cast<size_t>(it->length(3)), other);
        EXPECT_THAT(error_of(spoilt), StartsWith("m.toml:" + std::to_string(line) + ":")) << (*it)[2] << " = " << other;
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 85);
}

TEST(Matrix, ImpossibleValuesNameWhatIsValid) {
  const auto error = [](const std::string& from, const std::string& to) { return error_of(replaced(kFull, from, to)); };
  EXPECT_THAT(error("[1, 2, 3]", "[1, 1]"), HasSubstr("twice"));
  EXPECT_THAT(error("[1, 2, 3]", "[-1]"), HasSubstr("at least 0"));
  EXPECT_THAT(error("[1, 2, 3]", "[]"), HasSubstr("at least one"));
  EXPECT_THAT(error("[1, 2, 3]", "{ first = 1, count = 0 }"), HasSubstr("from 1"));
  EXPECT_THAT(error("reference = \"b\"", "reference = \"c\""), HasSubstr("known: transformer, b"));
  EXPECT_THAT(error("\"fair\"", "\"fiar\""), HasSubstr("did you mean 'fair'"));
  EXPECT_THAT(error("{ steps = 400 }", "{ steps = 0 }"), HasSubstr("above 0"));
  EXPECT_THAT(error("{ steps = 400 }", "{ steps = 400, epochs = 1 }"), HasSubstr("second unit"));
  EXPECT_THAT(error("{ steps = 400 }", "{ }"), HasSubstr("give one of steps"));
  EXPECT_THAT(error("pretrain = { steps = 1200 }", "pretrain = { share = 1.0 }"), HasSubstr("between 0 and 1"));
  EXPECT_THAT(error("pretrain = { steps = 1200 }", "total = { steps = 1200 }"), HasSubstr("finetune or total"));
  EXPECT_THAT(error("finetune = { steps = 400 }", "total = { steps = 1200 }"), HasSubstr("share"));
  EXPECT_THAT(error("finetune = { steps = 400 }\n", ""), HasSubstr("give finetune"));
  EXPECT_THAT(error("\"flops\"", "\"wall\""), HasSubstr("valid: steps, examples, tokens, flops"));
  EXPECT_THAT(error("\"flops\"", "\"flop\""), HasSubstr("did you mean 'flops'"));
  EXPECT_THAT(error("\"flops\"", "\"steps\""), HasSubstr("twice"));
  EXPECT_THAT(error("evaluations = 10", "evaluations = 0"), HasSubstr("at least 1"));
  EXPECT_THAT(error("lr = 0.002", "lr = -1"), HasSubstr("lr = -1 is out of range"));
  EXPECT_THAT(error("lr = 0.002", "lr = 1e999"), StartsWith("m.toml:12:"));
  EXPECT_THAT(error("label = \"b\"", "label = \"transformer\""), HasSubstr("stands at m.toml:18:"));
  EXPECT_THAT(error("label = \"b\"", "label = \"a/b\""), HasSubstr("must not have a '/'"));
  EXPECT_THAT(error("label = \"b\"", "label = \"\""), HasSubstr("is empty"));
  EXPECT_THAT(error("label = \"b\"", "label = \"=b\""), HasSubstr("must not begin with '='"));
  EXPECT_THAT(error("label = \"b\"", "label = \"b\xE2\x80\xAE\""), HasSubstr("turn the direction"));
  EXPECT_THAT(error("label = \"b\"", "label = \"" + std::string(101, 'b') + "\""), HasSubstr("has 101 bytes; give at most 100"));
  EXPECT_THAT(error("stage = \"pretrain\"", "stage = \"pretran\""), HasSubstr("did you mean 'pretrain'"));
  EXPECT_THAT(error("task = \"fashion\"", "task = \"fasion\""), HasSubstr("did you mean 'fashion'"));
  EXPECT_THAT(error("train = { lr = 1 }", ""), HasSubstr("changes nothing"));
  EXPECT_THAT(error("budget = { finetune", "architecture = \"b\"\nbudget = { finetune"), HasSubstr("`task` alone"));
  EXPECT_THAT(error("{ epochs = 1.5 }, pretrain = { share = 0.5 }", "{ epochs = 1.5 }, total = { steps = 1 }"), HasSubstr("not both"));
  EXPECT_THAT(error("finetune = { epochs = 1.5 }, pretrain = { share = 0.5 }", "total = { steps = 1 }"), HasSubstr("finetune mode"));
  EXPECT_THAT(error("margin = 0.02", "margin = -0.02"), HasSubstr("at least 0"));
  EXPECT_THAT(error("protocols = [\"scratch\", \"spt-masked\"]", "protocols = []"), HasSubstr("at least one"));
}

TEST(Matrix, SeedsStayWithinWhatADatabaseHolds) {
  const auto seeds = [](const std::string& text) { return error_of(replaced(kFull, "seeds = [1, 2, 3]", "seeds = " + text)); };
  EXPECT_THAT(seeds("{ first = 9223372036854775807, count = 2 }"), HasSubstr("9223372036854775807 leaves no room for 2 seeds"));
  EXPECT_EQ(seeds("{ first = 9223372036854775807, count = 1 }"), "");
}

TEST(Matrix, ProtocolsAreAListOrTables) {
  const std::string tables = replaced(kFull, "protocols = [\"scratch\", \"spt-masked\"]\n", "") +
                             "[[protocol]]\nname = \"spt-masked\"\nlabel = \"half\"\noptions = { ratio = 0.5 }\n";
  const Matrix m = parse_matrix(tables, "m.toml");
  ASSERT_EQ(m.protocols.size(), 1u);
  EXPECT_EQ(m.protocols[0].label, "half");
  EXPECT_EQ(m.protocols[0].options.at("ratio").value, OptionValue(0.5));
  EXPECT_THAT(error_of(kFull + "[[protocol]]\nname = \"x\"\n"), HasSubstr("either this list or"));
}

TEST(Matrix, AnalysisHashFollowsTheAnalysisAlone) {
  const std::string hash = analysis_hash(parse_matrix(kFull, "m.toml"));
  EXPECT_EQ(analysis_hash(parse_matrix(replaced(kFull, "lr = 0.002", "lr = 0.003"), "m.toml")), hash);
  EXPECT_NE(analysis_hash(parse_matrix(replaced(kFull, "margin = 0.02", "margin = 0.03"), "m.toml")), hash);
  EXPECT_NE(analysis_hash(parse_matrix(replaced(kFull, "reference = \"b\"", ""), "m.toml")), hash);
}

}  // namespace
}  // namespace spt
