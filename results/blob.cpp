#include "results/blob.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>

#include "harness/base/error.h"

namespace spt::results {
namespace {

static_assert(std::endian::native == std::endian::little, "stored blobs are little-endian");

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int64_t kLargestRatio = 1032;  // deflate cannot compress better: bounds what a forged count can allocate

template <class T>
std::string compress_values(const std::vector<T>& values) {
  const uLong size = static_cast<uLong>(values.size() * sizeof(T));
  uLongf room = compressBound(size);
  std::string out(room, '\0');
  const Bytef empty = 0;
  const auto* bytes = values.empty() ? &empty : reinterpret_cast<const Bytef*>(values.data());
  const int code = compress2(reinterpret_cast<Bytef*>(out.data()), &room, bytes, size, Z_DEFAULT_COMPRESSION);
  SPT_CHECK(code == Z_OK, "zlib answers {} to {} bytes", code, size);
  out.resize(room);
  return out;
}

template <class T>
std::vector<T> decompress_values(std::string_view bytes, int64_t n, std::string_view where) {
  const int64_t size = static_cast<int64_t>(sizeof(T));
  if (n < 0 || n > (static_cast<int64_t>(bytes.size()) + 1) * kLargestRatio / size)
    throw Error("{}: {} compressed bytes cannot hold {} values", where, bytes.size(), n);
  std::vector<T> values(static_cast<size_t>(n) + 1);  // one more, to notice data that are too long
  uLongf length = values.size() * sizeof(T);
  uLong used = bytes.size();
  const int code = uncompress2(reinterpret_cast<Bytef*>(values.data()), &length, reinterpret_cast<const Bytef*>(bytes.data()), &used);
  if (code != Z_OK || used != bytes.size() || length != static_cast<uLongf>(n * size))
    throw Error("{}: the compressed values are damaged: not {} values of {} bytes", where, n, size);
  values.pop_back();
  return values;
}

std::array<int8_t, 256> base64_values() {
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kBase64Digits.size(); ++i) values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<int8_t>(i);
  return values;
}

}  // namespace

std::string compress(const std::vector<float>& values) { return compress_values(values); }
std::string compress(const std::vector<int32_t>& values) { return compress_values(values); }

std::vector<float> decompress_floats(std::string_view bytes, int64_t n, std::string_view where) {
  return decompress_values<float>(bytes, n, where);
}

std::vector<int32_t> decompress_ints(std::string_view bytes, int64_t n, std::string_view where) {
  return decompress_values<int32_t>(bytes, n, where);
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < have ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= have ? kBase64Digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text, std::string_view where) {
  static const std::array<int8_t, 256> kValues = base64_values();
  if (text.size() % 4 != 0) throw Error("{}: base64 text of {} characters is not whole", where, text.size());
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t pads = last ? (text[i + 2] == '=' ? 2 : text[i + 3] == '=' ? 1 : 0) : 0;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const bool pad = k >= 4 - pads;
      const int8_t value = pad && text[i + k] == '=' ? int8_t{0} : kValues[static_cast<uint8_t>(text[i + k])];
      if (value < 0) throw Error("{}: character {} of the base64 text is not a base64 digit", where, i + k);
      group = group << 6 | static_cast<uint32_t>(value);
    }
    if ((group & ((1u << (8 * pads)) - 1)) != 0) throw Error("{}: the base64 text has bits after its end", where);
    for (size_t k = 0; k < 3 - pads; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return bytes;
}

}  // namespace spt::results
