#include "reports/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace spt::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Length in bytes of the valid sequence that begins at `text[i]`, with its code point; 0 if it is broken (overlong, surrogate, >
/// U+10FFFF).
size_t decode(std::string_view text, size_t i, char32_t& code) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  const size_t length = first < 0x80 ? 1 : (first >> 5) == 6 ? 2 : (first >> 4) == 14 ? 3 : (first >> 3) == 30 ? 4 : 0;
  if (length == 0 || i + length > text.size()) return 0;
  code = length == 1 ? first : first & (0x7F >> length);
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(i + k) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kSmallest[length] && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
  return valid ? length : 0;
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFFFE || code == 0xFFFF;  // C0, C1, separators, direction overrides, not in XML
}

size_t width_of(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kZero[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},
                                    {0x64B, 0x65F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
                                    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
  static constexpr Range kWide[] = {{0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
                                    {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                    {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  for (const Range& range : kZero) {
    if (code >= range.first && code <= range.last) return 0;
  }
  for (const Range& range : kWide) {
    if (code >= range.first && code <= range.last) return 2;
  }
  return 1;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    char32_t code = 0;
    const size_t length = decode(text, i, code);
    if (length == 0) {
      clean += kReplacement;
      ++i;
      continue;
    }
    if (code == '\r') {
      clean += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else if (code == '\t') {
      clean += ' ';
    } else if (code != '\n' && is_control(code)) {
      clean += kReplacement;
    } else {
      clean += text.substr(i, length);
    }
    i += length;
  }
  return clean;
}

size_t display_width(std::string_view clean) {
  size_t width = 0;
  for (size_t i = 0; i < clean.size();) {
    char32_t code = 0;
    const size_t length = decode(clean, i, code);
    width += length == 0 ? 1 : width_of(code);
    i += length == 0 ? 1 : length;
  }
  return width;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0;;) {
    const size_t end = text.find('\n', begin);
    lines.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return lines;
    begin = end + 1;
  }
}

std::string escape_xml(std::string_view text) {
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
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string short_count(double value) {
  if (!std::isfinite(value)) return "-";
  static constexpr const char* kSuffixes[] = {"", "K", "M", "G", "T", "P", "E"};
  if (std::abs(value) < 9999.5) return fmt::format("{:.0f}", value);
  size_t suffix = 0;
  while (std::abs(value) >= 999.5 && suffix + 1 < std::size(kSuffixes)) {
    value /= 1000;
    ++suffix;
  }
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, kSuffixes[suffix]);
}

}  // namespace spt::reports
