#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// A NumPy array of numbers, row-major.
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Reads the .npy format, versions 1 to 3: little-endian float32 or float64, in C order. The content may hold no objects (nothing is
/// unpickled).
///
/// Errors: DataError beginning with `where` and the offset: no such file, another type or order, a size at odds with the shape.
/// Source: numpy.lib.format.
NpyArray parse_npy(std::string_view bytes, std::string_view where);
NpyArray read_npy(const std::filesystem::path& file);

}  // namespace spt::formats
