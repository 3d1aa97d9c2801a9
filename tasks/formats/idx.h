#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// An array of unsigned bytes as IDX files hold it, row-major.
struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
  bool operator==(const IdxArray&) const = default;
};

/// Reads IDX: bytes 0 0 8 (unsigned byte) and the number of dimensions, one 32-bit big-endian size a dimension, then the values.
///
/// Errors: DataError beginning with `where` for another magic, another element type, a number of dimensions other than `n_dims`, and for
///         content that is shorter or longer than the sizes say.
/// Source: the description at the end of yann.lecun.com/exdb/mnist; the files of Fashion-MNIST.
IdxArray parse_idx(std::string_view bytes, int64_t n_dims, std::string_view where);

/// The same of a file, plain, .gz or .xz; at most 1 GiB.
IdxArray read_idx(const std::filesystem::path& file, int64_t n_dims);

/// The bytes that parse_idx() reads.
std::string format_idx(const IdxArray& array);

}  // namespace spt::formats
