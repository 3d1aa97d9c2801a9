#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spt::formats {

/// One 8-bit image, row by row; grey, or with the three channels of a pixel side by side.
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;  ///< 1 or 3
  std::vector<uint8_t> pixels;
};

/// The bytes of a PNG file; the same for the same picture.
std::string encode_png(const Picture& picture);

/// A PNG file as one channel, what Pillow's convert("L") gives: grey of up to 8 bits, palettes and colours (luma()); transparency is
/// dropped.
///
/// Errors: DataError beginning with `where`, with the offset, for what is no PNG, is truncated or corrupt, has 16 bits a channel, or is
/// larger than `max_side` in a direction (nothing is allocated for it).
Picture decode_grey_png(std::string_view bytes, int64_t max_side, std::string_view where);
Picture read_grey_png(const std::filesystem::path& file, int64_t max_side);  ///< ... also if the file is not there

}  // namespace spt::formats
