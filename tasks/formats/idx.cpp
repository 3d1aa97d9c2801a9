#include "tasks/formats/idx.h"

#include "harness/base/error.h"
#include "tasks/formats/compressed.h"

namespace spt::formats {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int64_t kMaxIdxBytes = int64_t{1} << 30;

int64_t big_endian_32(std::string_view bytes) {
  int64_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, int64_t n_dims, std::string_view where) {
  if (bytes.size() < 4) throw DataError("{}: {} bytes are too short for an IDX file", where, bytes.size());
  if (bytes[0] != 0 || bytes[1] != 0) throw DataError("{}: not an IDX file: it does not begin with two zero bytes", where);
  if (static_cast<uint8_t>(bytes[2]) != kUnsignedByte)
    throw DataError("{}: IDX element type 0x{:02x}; only 0x08 (unsigned byte) is read", where, static_cast<uint8_t>(bytes[2]));
  const auto dims = static_cast<int64_t>(static_cast<uint8_t>(bytes[3]));
  if (dims != n_dims) throw DataError("{}: IDX array of {} dimensions, expected {}", where, dims, n_dims);
  const auto header = static_cast<size_t>(4 + 4 * dims);
  if (bytes.size() < header) throw DataError("{}: truncated in the IDX header", where);
  IdxArray array;
  int64_t count = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = big_endian_32(bytes.substr(static_cast<size_t>(4 + 4 * d)));
    array.shape.push_back(size);
    // Stops before the product can overflow: 2^30 times 2^32 fits.
    count = count > kMaxIdxBytes ? count : count * size;
  }
  const auto content = static_cast<int64_t>(bytes.size() - header);
  if (content != count)
    throw DataError("{}: {} bytes of values where the IDX header says {} ({})", where, content, count,
                    content < count ? "truncated" : "trailing bytes");
  const auto* values = reinterpret_cast<const uint8_t*>(bytes.data() + header);
  array.values.assign(values, values + content);
  return array;
}

IdxArray read_idx(const std::filesystem::path& file, int64_t n_dims) {
  return parse_idx(read_unpacked(file, kMaxIdxBytes), n_dims, fmt::format("'{}'", file.string()));
}

std::string format_idx(const IdxArray& array) {
  std::string bytes = {0, 0, static_cast<char>(kUnsignedByte), static_cast<char>(array.shape.size())};
  for (const int64_t size : array.shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xff);
  bytes.append(array.values.begin(), array.values.end());
  return bytes;
}

}  // namespace spt::formats
