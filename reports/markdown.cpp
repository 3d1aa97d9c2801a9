#include "reports/markdown.h"

#include "reports/text.h"

namespace spt::reports {
namespace {

std::string escape_markdown(std::string_view text) {
  std::string escaped;
  for (char c : clean_text(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\n':
        escaped += "<br>";
        break;
      case '|':
      case '*':
      case '_':
      case '`':
      case '[':
      case ']':
      case '~':
      case '\\':
      case '$':
      case '#':
      case '!':
        escaped += '\\';
        escaped += c;
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += ' ' + escape_markdown(cell) + " |";
  return row + '\n';
}

}  // namespace

std::string render_markdown(const Table& table) {
  std::string out;
  if (!table.title.empty()) out += "**" + escape_markdown(table.title) + "**\n\n";
  std::vector<std::string> headers;
  std::string rule = "|";
  for (const Column& column : table.columns) {
    headers.push_back(column.header);
    rule += column.align == Align::kRight ? "---:|" : "---|";
  }
  out += markdown_row(headers) + rule + '\n';
  for (const auto& cells : table.rows) out += markdown_row(cells);
  if (!table.footnotes.empty()) out += '\n';
  for (const std::string& note : table.footnotes) out += "* " + escape_markdown(note) + '\n';
  return out;
}

std::string render_markdown(const Page& page) {
  std::string out = "# " + escape_markdown(page.title) + "\n\n";
  for (const auto& [name, value] : page.facts) out += "* " + escape_markdown(name) + ": " + escape_markdown(value) + '\n';
  for (const std::string& notice : page.notices) out += "\n> " + escape_markdown(notice) + '\n';
  for (const Section& section : page.sections) {
    out += "\n## " + escape_markdown(section.heading) + '\n';
    for (const std::string& paragraph : section.paragraphs) out += '\n' + escape_markdown(paragraph) + '\n';
    for (const Table& table : section.tables) out += '\n' + render_markdown(table);
    for (const Figure& figure : section.figures) {
      const std::string caption = escape_markdown(figure.caption);
      out += figure.svg.empty() ? "\n" + caption + ": " + escape_markdown(figure.missing) + "\n"
                                : "\n![" + caption + "](" + figure.name + ".svg)\n\n" + caption + "\n";
    }
  }
  return out;
}

}  // namespace spt::reports
