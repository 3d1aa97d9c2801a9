#include "tasks/formats/npy.h"

#include <charconv>
#include <cstring>

#include "harness/base/error.h"
#include "tasks/formats/mapped_file.h"

namespace spt::formats {
namespace {

struct NpyHeader {
  std::string_view text;  ///< a Python dictionary
  size_t data = 0;        ///< offset of the values
};

NpyHeader npy_header(std::string_view bytes, std::string_view where) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) throw DataError("{}: byte 0: not a .npy file", where);
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) throw DataError("{}: byte 6: version {} of .npy is not known", where, version);
  const size_t begin = version == 1 ? 10 : 12;
  const size_t size = byte(8) + (byte(9) << 8) + (version == 1 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (size > bytes.size() - begin) throw DataError("{}: byte 8: a header of {} bytes in a file of {}", where, size, bytes.size());
  return {bytes.substr(begin, size), begin + size};
}

/// What follows 'key': in the header.
std::string_view npy_value(std::string_view header, std::string_view key, std::string_view where) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) throw DataError("{}: its header has no '{}'", where, key);
  std::string_view rest = header.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

std::vector<int64_t> npy_shape(std::string_view text, std::string_view where) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) throw DataError("{}: its header has no shape", where);
  std::vector<int64_t> shape;
  for (size_t at = 1; at < end;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t n = -1;
    const auto [next, problem] = std::from_chars(text.data() + at, text.data() + end, n);
    if (problem != std::errc{} || n < 0 || n > kLargest)
      throw DataError("{}: the shape {} is not possible", where, text.substr(0, end + 1));
    shape.push_back(n);
    at = static_cast<size_t>(next - text.data());
  }
  return shape;
}

template <class T>
void npy_values(std::string_view bytes, std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, std::string_view where) {
  const NpyHeader header = npy_header(bytes, where);
  const std::string_view type = npy_value(header.text, "descr", where);
  const bool wide = type.starts_with("'<f8'");
  if (!wide && !type.starts_with("'<f4'"))
    throw DataError("{}: values of type {} instead of '<f8' or '<f4'", where, type.substr(0, type.find(',')));
  if (!npy_value(header.text, "fortran_order", where).starts_with("False")) throw DataError("{}: the array is not in C order", where);
  NpyArray array{npy_shape(npy_value(header.text, "shape", where), where), {}};
  uint64_t count = 1;
  const uint64_t there = (bytes.size() - header.data) / (wide ? 8 : 4);
  for (const int64_t n : array.shape)
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(n), &count)) throw DataError("{}: its shape is too large", where);
  if (count != there || (bytes.size() - header.data) % (wide ? 8 : 4) != 0)
    throw DataError("{}: byte {}: {} values for a shape of {}", where, header.data, there, count);
  array.values.resize(count);
  wide ? npy_values<double>(bytes.substr(header.data), array.values) : npy_values<float>(bytes.substr(header.data), array.values);
  return array;
}

NpyArray read_npy(const std::filesystem::path& file) { return parse_npy(MappedFile(file).bytes(), fmt::format("'{}'", file.string())); }

}  // namespace spt::formats
