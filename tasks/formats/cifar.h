#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tasks/formats/image.h"

namespace spt::formats {

inline constexpr int64_t kCifarSide = 32;
inline constexpr int64_t kCifarClasses = 10;
inline constexpr int64_t kCifarRecordBytes = 1 + 3 * kCifarSide * kCifarSide;

/// Reads CIFAR-10's binary version: per image one label byte 0..9, then the red, the green and the blue plane of 32 x 32 bytes, row-major.
///
/// Errors: DataError beginning with `where` if the size is no positive multiple of 3,073 bytes, or a label is above 9.
/// Source: Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
ImageSet parse_cifar(std::string_view bytes, std::string_view where);

/// The same of a file, plain, .gz or .xz, that must hold `n` images (0: any number up to 100,000).
ImageSet read_cifar(const std::filesystem::path& file, int64_t n = 0);

/// The bytes that parse_cifar() reads.
std::string format_cifar(const ImageSet& images);

/// Appends `more`, of the same image size.
void append_images(ImageSet& images, const ImageSet& more);

}  // namespace spt::formats
