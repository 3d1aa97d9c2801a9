#include "reports/html.h"

#include "reports/text.h"

namespace spt::reports {
namespace {

constexpr std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --head: #f3f5f8; --notice: #fff6da; --edge: #bf8700; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --ink: #e3e7ec; --soft: #9aa4af; --line: #363d47; --head: #1f242b; --notice: #2f2912; --edge: #d6a53a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem 2rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0 0 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
p { max-width: 60rem; }
.notice { border-left: 4px solid var(--edge); background: var(--notice); padding: .45rem .8rem; margin: .4rem 0; max-width: none; }
.scroll { overflow-x: auto; margin: 1.25rem 0 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
caption { text-align: left; font-weight: 600; padding: 0 0 .4rem; }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--head); font-weight: 600; vertical-align: bottom; }
tbody tr:hover { background: var(--head); }
.r { text-align: right; }
ul.notes { color: var(--soft); font-size: 13px; margin: .5rem 0 0; padding-left: 1.2rem; max-width: 60rem; }
figure { margin: 1.5rem 0 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; color: var(--ink); }
figcaption { color: var(--soft); font-size: 13px; }
nav a { color: inherit; margin-right: 1rem; }
@media print {
  :root { --page: #fff; --ink: #000; --soft: #444; --line: #bbb; --head: #f2f2f2; --notice: #fff; }
  body { padding: 0; max-width: none; font-size: 10pt; } nav { display: none; }
  .scroll, figure { overflow: visible; break-inside: avoid; } table { font-size: 8pt; } th, td { padding: .15rem .35rem; }
}
)css";

std::string html_lines(std::string_view text) {
  std::string out;
  const std::vector<std::string> lines = split_lines(clean_text(text));
  for (size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "<br>") + escape_xml(lines[i]);
  return out;
}

std::string html_cells(const std::vector<std::string>& cells, const std::vector<Column>& columns, const char* tag, const char* attributes) {
  std::string out = "<tr>";
  for (size_t c = 0; c < cells.size(); ++c) {
    out += std::string("<") + tag + attributes + (columns[c].align == Align::kRight ? " class=\"r\">" : ">") + html_lines(cells[c]) + "</" +
           tag + ">";
  }
  return out + "</tr>\n";
}

std::string html_table(const Table& table) {
  std::vector<std::string> headers;
  for (const Column& column : table.columns) headers.push_back(column.header);
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  if (!table.title.empty()) out += "<caption>" + html_lines(table.title) + "</caption>\n";
  out += "<thead>" + html_cells(headers, table.columns, "th", " scope=\"col\"") + "</thead>\n<tbody>\n";
  for (const auto& cells : table.rows) out += html_cells(cells, table.columns, "td", "");
  out += "</tbody></table></div>\n";
  if (table.footnotes.empty()) return out;
  out += "<ul class=\"notes\">\n";
  for (const std::string& note : table.footnotes) out += "<li>" + html_lines(note) + "</li>\n";
  return out + "</ul>\n";
}

std::string html_figure(const Figure& figure) {
  const std::string body = figure.svg.empty() ? "<p class=\"notice\">" + html_lines(figure.missing) + "</p>" : figure.svg;
  return "<figure>\n" + body + "\n<figcaption>" + html_lines(figure.caption) + "</figcaption>\n</figure>\n";
}

}  // namespace

std::string render_html(const Page& page) {
  const std::string title = escape_xml(page.title);
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n";
  out += "<title>" + title + "</title>\n<style>" + std::string(kPageStyle) + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n";
  if (!page.facts.empty()) {
    out += "<dl>\n";
    for (const auto& [name, value] : page.facts) out += "<dt>" + html_lines(name) + "</dt><dd>" + html_lines(value) + "</dd>\n";
    out += "</dl>\n";
  }
  for (const std::string& notice : page.notices) out += "<p class=\"notice\">" + html_lines(notice) + "</p>\n";
  if (page.sections.size() > 1) {
    out += "<nav>";
    for (size_t i = 0; i < page.sections.size(); ++i)
      out += "<a href=\"#s" + std::to_string(i + 1) + "\">" + html_lines(page.sections[i].heading) + "</a>";
    out += "</nav>\n";
  }
  for (size_t i = 0; i < page.sections.size(); ++i) {
    const Section& section = page.sections[i];
    out += "<section id=\"s" + std::to_string(i + 1) + "\">\n<h2>" + html_lines(section.heading) + "</h2>\n";
    for (const std::string& paragraph : section.paragraphs) out += "<p>" + html_lines(paragraph) + "</p>\n";
    for (const Table& table : section.tables) out += html_table(table);
    for (const Figure& figure : section.figures) out += html_figure(figure);
    out += "</section>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace spt::reports
