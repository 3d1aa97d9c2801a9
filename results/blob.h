#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spt::results {

/// Per-example values as they are stored: little-endian 32-bit values, zlib-compressed. Bits are kept, NaN payloads too.
std::string compress(const std::vector<float>& values);
std::string compress(const std::vector<int32_t>& values);

/// The way back. Errors: Error that names where if the bytes are not zlib data of exactly n values.
std::vector<float> decompress_floats(std::string_view bytes, int64_t n, std::string_view where);
std::vector<int32_t> decompress_ints(std::string_view bytes, int64_t n, std::string_view where);

/// RFC 4648 section 4, with padding. from_base64 is strict. Errors: Error that names where.
std::string to_base64(std::string_view bytes);
std::string from_base64(std::string_view text, std::string_view where);

}  // namespace spt::results
