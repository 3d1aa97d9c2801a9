#include "tasks/formats/tokenize.h"

#include "harness/base/error.h"

namespace spt::formats {
namespace {

/// How a UTF-8 sequence goes on after its first byte: bytes in all (0: no valid first byte) and the smallest value that needs so many.
struct Utf8Form {
  size_t bytes;
  char32_t first_bits;
  char32_t smallest;
};

Utf8Form utf8_form(unsigned char lead) {
  if (lead < 0x80) return {1, lead, 0};
  if (lead >= 0xc2 && lead < 0xe0) return {2, lead & 0x1fu, 0x80};
  if (lead >= 0xe0 && lead < 0xf0) return {3, lead & 0x0fu, 0x800};
  if (lead >= 0xf0 && lead < 0xf5) return {4, lead & 0x07u, 0x10000};
  return {0, 0, 0};
}

}  // namespace

std::vector<std::string> listops_tokens(std::string_view expression) {
  std::vector<std::string> tokens;
  std::string token;
  const auto end_token = [&] {
    if (!token.empty()) tokens.push_back(std::move(token));
    token.clear();
  };
  for (const char c : expression) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      end_token();
    } else if (c != '(' && c != ')') {
      token += c == ']' ? 'X' : c;
    }
  }
  end_token();
  return tokens;
}

std::u32string code_points(std::string_view utf8, std::string_view where) {
  std::u32string points;
  points.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size();) {
    const Utf8Form form = utf8_form(static_cast<unsigned char>(utf8[at]));
    bool valid = form.bytes > 0 && at + form.bytes <= utf8.size();
    char32_t point = form.first_bits;
    for (size_t k = 1; valid && k < form.bytes; ++k) {
      const auto byte = static_cast<unsigned char>(utf8[at + k]);
      valid = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3fu);
    }
    if (!valid || point < form.smallest || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      throw DataError("{}: byte {} (0x{:02x}) is not UTF-8", where, at, static_cast<unsigned char>(utf8[at]));
    }
    points.push_back(point);
    at += form.bytes;
  }
  return points;
}

std::string to_utf8(char32_t p) {
  SPT_CHECK(p <= 0x10ffff, "{:x} is no code point", static_cast<uint32_t>(p));
  const auto tail = [](char32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (p < 0x80) return {static_cast<char>(p)};
  if (p < 0x800) return {static_cast<char>(0xc0 | p >> 6), tail(p)};
  if (p < 0x10000) return {static_cast<char>(0xe0 | p >> 12), tail(p >> 6), tail(p)};
  return {static_cast<char>(0xf0 | p >> 18), tail(p >> 12), tail(p >> 6), tail(p)};
}

}  // namespace spt::formats
