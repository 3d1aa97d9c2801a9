#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spt::reports {

/// The same text as valid UTF-8 that no renderer can trip over: a broken sequence and a control character (a terminal's escape too) become
/// U+FFFD, a tab a space. Line breaks stay; "\r\n" and "\r" become "\n".
std::string clean_text(std::string_view text);

/// Columns of a terminal that clean text without line breaks takes: combining marks 0, East Asian wide characters and emoji 2.
size_t display_width(std::string_view clean);

/// At line breaks; "" is one empty line.
std::vector<std::string> split_lines(std::string_view text);

/// For element content and quoted attributes of HTML and SVG: & < > " ' escaped, text cleaned.
std::string escape_xml(std::string_view text);

/// 1234 -> "1234", 12345 -> "12.3K", then M, G, T, P, E; for counts and FLOPs that stand beside each other. Three significant digits.
std::string short_count(double value);

}  // namespace spt::reports
