#pragma once

#include <string>
#include <utility>
#include <vector>

namespace spt::reports {

enum class Align { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kLeft;
};

/// A line break in any text is a line break in each output; every renderer escapes what its format needs.
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> footnotes;

  /// Errors: SPT_CHECK that it has one text a column.
  void add_row(std::vector<std::string> cells);
};

/// A drawing as one <svg> element, or the reason why there is none.
struct Figure {
  std::string name;  ///< file stem, unique on the page: letters, digits and _
  std::string caption;
  std::string svg;      ///< strokes and text in currentColor; "" where there is none
  std::string missing;  ///< said in its place
};

struct Section {
  std::string heading;
  std::vector<std::string> paragraphs;
  std::vector<Table> tables;
  std::vector<Figure> figures;
};

/// What a report says, before any format.
struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< name, value; printed first
  std::vector<std::string> notices;                        ///< must be read before the numbers
  std::vector<Section> sections;
};

}  // namespace spt::reports
