#include <gmock/gmock.h>

#include <cmath>

#include "reports/csv.h"
#include "reports/html.h"
#include "reports/markdown.h"
#include "reports/table.h"
#include "reports/terminal.h"
#include "reports/text.h"

namespace spt::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<b>&|,\"'`*_[x](y)\nsecond\x1b[31m\xff";

Table hostile_table() {
  Table table{"title " + std::string(kHostile), {{kHostile, Align::kLeft}, {"value", Align::kRight}}, {}, {kHostile}};
  table.add_row({kHostile, "0.5"});
  return table;
}

Page page_of(const Table& table) {
  return Page{
      kHostile, {{kHostile, kHostile}}, {kHostile}, {Section{kHostile, {kHostile}, {table}, {Figure{"f", kHostile, "", kHostile}}}}};
}

TEST(Text, CleansWhatATerminalOrAParserTripsOver) {
  EXPECT_EQ(clean_text("a\tb\r\nc\rd"), "a b\nc\nd");
  EXPECT_EQ(clean_text("\x1b[0m"), "\xEF\xBF\xBD[0m");
  EXPECT_EQ(clean_text("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(clean_text("\xc3"), "\xEF\xBF\xBD");                       // cut off
  EXPECT_EQ(clean_text("\xc0\xaf"), "\xEF\xBF\xBD\xEF\xBF\xBD");       // overlong
  EXPECT_EQ(clean_text("\xed\xa0\x80").substr(0, 3), "\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(clean_text("a\xe2\x80\xae"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");  // right-to-left override
}

TEST(Text, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\xc3\xa9"), 1u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);         // combining accent
  EXPECT_EQ(display_width("\xe8\xa1\xa8"), 2u);      // a wide character
  EXPECT_EQ(display_width("\xf0\x9f\x98\x80"), 2u);  // an emoji
}

TEST(Text, ShortCountKeepsThreeDigits) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(9999), "9999");
  EXPECT_EQ(short_count(12345), "12.3K");
  EXPECT_EQ(short_count(999999), "1.00M");
  EXPECT_EQ(short_count(3.21e12), "3.21T");
  EXPECT_EQ(short_count(5e20), "500E");
  EXPECT_EQ(short_count(std::nan("")), "-");
}

TEST(Terminal, AlignsUtf8AndCellsOfSeveralLines) {
  Table table{"T", {{"name", Align::kLeft}, {"x", Align::kRight}}, {}, {"note"}};
  table.add_row({"\xe8\xa1\xa8", "1"});
  table.add_row({"caf\xc3\xa9\nmore", "22\n333"});
  EXPECT_EQ(render_terminal(table),
            "T\n"
            "name    x\n"
            "----  ---\n"
            "\xe8\xa1\xa8      1\n"
            "caf\xc3\xa9   22\n"
            "more  333\n"
            "  * note\n");
}

TEST(Terminal, LetsNoEscapeSequenceThrough) {
  const std::string text = render_terminal(page_of(hostile_table()));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  EXPECT_THAT(text, HasSubstr("<b>&|,\"'`*_[x](y)"));
}

TEST(Terminal, WrapsFootnotesAtSpaces) {
  Table table{"", {{"a", Align::kLeft}}, {}, {std::string(60, 'x') + " " + std::string(60, 'y')}};
  EXPECT_THAT(render_terminal(table), HasSubstr("\n    " + std::string(60, 'y') + "\n"));
}

TEST(Markdown, EscapesLabels) {
  const std::string text = render_markdown(hostile_table());
  EXPECT_THAT(text, HasSubstr("| &lt;b&gt;&amp;\\|,\"'\\`\\*\\_\\[x\\](y)<br>second"));
  EXPECT_THAT(text, HasSubstr("|---|---:|\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Markdown, LinksAFigureOrSaysWhyThereIsNone) {
  Page page{
      "t", {}, {}, {Section{"s", {}, {}, {Figure{"curve_1", "Curves", "<svg/>", ""}, Figure{"curve_2", "Others", "", "no gnuplot"}}}}};
  EXPECT_THAT(render_markdown(page), HasSubstr("![Curves](curve_1.svg)"));
  EXPECT_THAT(render_markdown(page), HasSubstr("Others: no gnuplot"));
}

TEST(Csv, QuotesAsRfc4180) {
  Table table{"not shown", {{"a,b", Align::kLeft}, {"c", Align::kRight}}, {}, {"not shown"}};
  table.add_row({"say \"x\"\nline", "1.5"});
  EXPECT_EQ(render_csv(table), "\"a,b\",c\r\n\"say \"\"x\"\"\nline\",1.5\r\n");
}

TEST(Csv, NumbersReadBackAsThemselves) {
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(std::stod(csv_number(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(csv_number(std::nan("")), "");
}

TEST(Html, EscapesLabelsEverywhere) {
  const std::string html = render_html(page_of(hostile_table()));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&amp;|,&quot;&#39;`*_[x](y)<br>second"));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
}

TEST(Html, StandsAlone) {
  const std::string html = render_html(page_of(hostile_table()));
  for (const char* fetch : {"<script", "http://", "https://", "src=", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(fetch))) << fetch;
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("@media print"));
}

TEST(Html, KeepsAnEmptyFirstLine) {
  Table table{"", {{"a", Align::kLeft}}, {}, {}};
  table.add_row({"\nx"});
  EXPECT_THAT(render_html(Page{"t", {}, {}, {Section{"s", {}, {table}, {}}}}), HasSubstr("<td><br>x</td>"));
}

}  // namespace
}  // namespace spt::reports
