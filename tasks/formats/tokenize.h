#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// Tokens of a ListOps expression: `]` becomes `X`, `(` and `)` are deleted, then split at white space.
///
/// Source: arXiv:2310.02980 and its code; must equal the reference case tokenizer_listops.
std::vector<std::string> listops_tokens(std::string_view expression);

/// Code points of strict UTF-8 (no overlong forms, surrogates or values above U+10FFFF); nothing is normalised or dropped.
///
/// Errors: DataError naming `where` and the byte's offset. Bytes that are not UTF-8 are damage, so they are not replaced by U+FFFD.
std::u32string code_points(std::string_view utf8, std::string_view where);

/// UTF-8 of one code point.
std::string to_utf8(char32_t code_point);

}  // namespace spt::formats
