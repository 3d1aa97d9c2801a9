#include "reports/terminal.h"

#include <algorithm>
#include <set>

#include "reports/text.h"

namespace spt::reports {
namespace {

constexpr size_t kTerminalFootnoteWidth = 110;

using TerminalRow = std::vector<std::vector<std::string>>;  // lines of each cell

TerminalRow split_terminal_row(const std::vector<std::string>& cells) {
  TerminalRow row;
  for (const std::string& cell : cells) row.push_back(split_lines(clean_text(cell)));
  return row;
}

void append_terminal_row(std::string& out, const TerminalRow& row, const std::vector<Column>& columns, const std::vector<size_t>& widths) {
  size_t height = 0;
  for (const auto& lines : row) height = std::max(height, lines.size());
  for (size_t line = 0; line < height; ++line) {
    std::string text;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string cell = line < row[c].size() ? row[c][line] : "";
      const std::string padding(widths[c] - display_width(cell), ' ');
      if (c > 0) text += "  ";
      text += columns[c].align == Align::kRight ? padding + cell : cell + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
}

/// Breaks at spaces; later lines are indented by `indent`.
std::string wrap_terminal_text(std::string_view text, size_t indent) {
  std::string out;
  size_t width = 0;
  for (const std::string& line : split_lines(clean_text(text))) {
    if (!out.empty()) out += '\n' + std::string(indent, ' ');
    width = indent;
    for (size_t begin = 0; begin < line.size();) {
      const size_t end = std::min(line.find(' ', begin), line.size());
      const std::string_view word = std::string_view(line).substr(begin, end - begin);
      const size_t word_width = display_width(word);
      if (width > indent && width + 1 + word_width > kTerminalFootnoteWidth) {
        out += '\n' + std::string(indent, ' ');
        width = indent;
      } else if (width > indent) {
        out += ' ';
        ++width;
      }
      out += word;
      width += word_width;
      begin = end + 1;
    }
  }
  return out;
}

std::string table_without_notes(const Table& table) {
  std::vector<std::string> headers;
  for (const Column& column : table.columns) headers.push_back(column.header);
  std::vector<TerminalRow> rows = {split_terminal_row(headers)};
  for (const auto& cells : table.rows) rows.push_back(split_terminal_row(cells));
  std::vector<size_t> widths(table.columns.size(), 0);
  for (const TerminalRow& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      for (const std::string& line : row[c]) widths[c] = std::max(widths[c], display_width(line));
    }
  }
  std::string out;
  if (!table.title.empty()) out += wrap_terminal_text(table.title, 0) + '\n';
  append_terminal_row(out, rows[0], table.columns, widths);
  TerminalRow rule;
  for (size_t width : widths) rule.push_back({std::string(width, '-')});
  append_terminal_row(out, rule, table.columns, widths);
  for (size_t r = 1; r < rows.size(); ++r) append_terminal_row(out, rows[r], table.columns, widths);
  return out;
}

std::string terminal_note(const std::string& note) { return "  * " + wrap_terminal_text(note, 4) + '\n'; }

}  // namespace

std::string render_terminal(const Table& table) {
  std::string out = table_without_notes(table);
  for (const std::string& note : table.footnotes) out += terminal_note(note);
  return out;
}

std::string render_terminal(const Page& page) {
  std::set<std::string> told;
  std::string out = clean_text(page.title) + "\n";
  for (const auto& [name, value] : page.facts) out += "  " + clean_text(name) + ": " + wrap_terminal_text(value, 4) + '\n';
  for (const std::string& notice : page.notices) out += "! " + wrap_terminal_text(notice, 2) + '\n';
  for (const Section& section : page.sections) {
    out += "\n== " + clean_text(section.heading) + " ==\n";
    for (const std::string& paragraph : section.paragraphs) out += wrap_terminal_text(paragraph, 0) + '\n';
    for (const Table& table : section.tables) {
      out += '\n' + table_without_notes(table);
      bool repeated = false;
      for (const std::string& note : table.footnotes) {
        if (told.insert(note).second) {
          out += terminal_note(note);
        } else {
          repeated = true;
        }
      }
      if (repeated) out += terminal_note("Notes above hold here too.");
    }
    for (const Figure& figure : section.figures) {
      if (figure.svg.empty()) out += '\n' + wrap_terminal_text(figure.caption + ": " + figure.missing, 2) + '\n';
    }
  }
  return out;
}

}  // namespace spt::reports
