#include "harness/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace spt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
std::string parse_error_of(std::string_view text) {
  return error_of([&] { parse_toml(text, "m.toml"); });
}

TEST(Toml, ReadsValuesWithTheirPlaces) {
  const TomlValue file = parse_toml("a = 1\n[t]\nb = 2.5\nlist = [1, 2]\n  [[t.x]]\n  s = 'it'\n", "m.toml");
  TomlReader reader(file, "m.toml", "");
  EXPECT_EQ(reader.get<int64_t>("a"), 1);
  EXPECT_EQ(reader.get<double>("a"), 1.0);
  TomlReader table = reader.table("t");
  EXPECT_EQ(table.get<double>("b"), 2.5);
  EXPECT_EQ(table.list<int64_t>("list"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(table.place("list"), "m.toml:4:1");
  std::vector<TomlReader> inner = table.tables("x");
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(inner[0].get<std::string>("s"), "it");
  EXPECT_EQ(inner[0].place("s"), "m.toml:6:3");
  EXPECT_NO_THROW(reader.finish());
  EXPECT_NO_THROW(table.finish());
}

TEST(Toml, WrongTypeNamesPlaceValueAndWhatIsAllowed) {
  const TomlValue file = parse_toml("\n[budget]\nsteps = 'many'\n", "m.toml");
  TomlReader reader(file, "m.toml", "");
  TomlReader budget = reader.table("budget");
  EXPECT_EQ(error_of([&] { budget.get<int64_t>("steps"); }), "m.toml:3:1: budget.steps = \"many\" is a string; it must be an integer");
  EXPECT_THAT(error_of([&] { budget.get<double>("steps"); }), HasSubstr("must be a number"));
  EXPECT_THAT(error_of([&] { reader.get<bool>("budget"); }), HasSubstr("{...} is a table; it must be true or false"));
  EXPECT_THAT(error_of([&] { budget.table("steps"); }), HasSubstr("it must be a table"));
  EXPECT_THAT(error_of([&] { budget.tables("steps"); }), HasSubstr("[[budget.steps]]"));
  EXPECT_THAT(error_of([&] { budget.list<std::string>("steps"); }), HasSubstr("it must be a list"));
}

TEST(Toml, AKeyOfTooManyPartsIsRefusedAndNumbersAreNotKeys) {
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_EQ(error_of([&] { parse_toml("x = 1\n" + deep + " = 1\n", "m.toml"); }), "m.toml:2:202: a key of more than 100 parts");
  EXPECT_THAT(error_of([&] { parse_toml("x = { " + deep + " = 1 }\n", "m.toml"); }), HasSubstr("a key of more than 100 parts"));
  std::string numbers = "0.5";
  for (int i = 0; i < 1000; ++i) numbers += ", 0.5";
  EXPECT_NO_THROW(parse_toml("x = [" + numbers + "]\n", "m.toml"));
}

TEST(Toml, AFloatIsNoInteger) {
  const TomlValue file = parse_toml("a = 1.0\n", "m.toml");
  TomlReader reader(file, "m.toml", "");
  EXPECT_THAT(error_of([&] { reader.get<int64_t>("a"); }), HasSubstr("must be an integer"));
}

TEST(Toml, UnknownKeySuggests) {
  const TomlValue file = parse_toml("seeds = [1]\nprotocls = 1\n", "m.toml");
  TomlReader reader(file, "m.toml", "");
  reader.has("seeds"), reader.has("protocols");
  EXPECT_EQ(error_of([&] { reader.finish(); }), "m.toml:2:1: unknown key 'protocls'; did you mean 'protocols'? known: protocols, seeds");
}

TEST(Toml, MissingKeyThatIsMisspeltSaysSo) {
  const TomlValue file = parse_toml("nmae = 'x'\n", "m.toml");
  TomlReader reader(file, "m.toml", "");
  EXPECT_EQ(error_of([&] { reader.get<std::string>("name"); }), "m.toml:1:1: nmae: unknown key; did you mean 'name'?");
  EXPECT_EQ(error_of([&] { reader.get<std::string>("margin"); }), "m.toml:1:1: key 'margin' is missing");
}

TEST(Toml, SyntaxErrorsHaveAPlace) {
  EXPECT_THAT(parse_error_of("a = 1\na = 2\n"), StartsWith("m.toml:2:"));
  EXPECT_THAT(parse_error_of("[t]\nb = 1\n[t]\n"), StartsWith("m.toml:3:"));
  EXPECT_THAT(parse_error_of("a = \n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(parse_error_of("a = 'x\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(parse_error_of("a = 99999999999999999999\n"), StartsWith("m.toml:1:"));
  EXPECT_THAT(parse_error_of("a = nan\n"), HasSubstr("finite"));
  EXPECT_THAT(parse_error_of("a = -inf\n"), HasSubstr("finite"));
  EXPECT_THAT(parse_error_of("a = 2024-01-01\n"), HasSubstr("dates"));
  EXPECT_THAT(parse_error_of(std::string_view("a = 1\0b = 2\n", 12)), StartsWith("m.toml:1:"));
}

TEST(Toml, RefusesBytesOutsideAsciiButInStringsAndComments) {
  EXPECT_THAT(parse_error_of("a = 1\nb\xC2\xA0= 2\n"), StartsWith("m.toml:2:2: a character outside ASCII"));
  EXPECT_THAT(parse_error_of("\xCA\xB6"), StartsWith("m.toml:1:1:"));
  EXPECT_THAT(parse_error_of("\xEF\xBB\xBF"
                             "a = 1"),
              HasSubstr("byte order mark"));
  EXPECT_EQ(parse_error_of("# gr\xC3\xBC\xC3\x9F\na = 'gr\xC3\xBC'\nb = \"\\\"\xC3\xBC\"\nc = '''\n'\xC3\xBC\n'''\n\"\xC3\xBC\" = 1\n"),
            "");
  EXPECT_THAT(parse_error_of("a = '''x''' \xC3\xBC\n"), StartsWith("m.toml:1:13:"));
}

}  // namespace
}  // namespace spt
