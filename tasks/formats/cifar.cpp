#include "tasks/formats/cifar.h"

#include "harness/base/error.h"
#include "tasks/formats/compressed.h"

namespace spt::formats {

ImageSet parse_cifar(std::string_view bytes, std::string_view where) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size == 0 || size % kCifarRecordBytes != 0)
    throw DataError("{}: {} bytes are no whole number of CIFAR-10 records of {} bytes", where, size, kCifarRecordBytes);
  ImageSet images{.n = size / kCifarRecordBytes, .channels = 3, .height = kCifarSide, .width = kCifarSide, .pixels = {}, .labels = {}};
  images.pixels.reserve(static_cast<size_t>(images.n * images.image_bytes()));
  for (int64_t i = 0; i < images.n; ++i) {
    const auto* record = reinterpret_cast<const uint8_t*>(bytes.data()) + i * kCifarRecordBytes;
    if (record[0] >= kCifarClasses) throw DataError("{}: record {} has label {}; CIFAR-10 has 0 to 9", where, i, record[0]);
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record + 1, record + kCifarRecordBytes);
  }
  return images;
}

ImageSet read_cifar(const std::filesystem::path& file, int64_t n) {
  constexpr int64_t kMostImages = 100'000;
  const std::string where = fmt::format("'{}'", file.string());
  ImageSet images = parse_cifar(read_unpacked(file, (n > 0 ? n : kMostImages) * kCifarRecordBytes), where);
  if (n > 0 && images.n != n) throw DataError("{}: {} images, expected {}", where, images.n, n);
  return images;
}

std::string format_cifar(const ImageSet& images) {
  SPT_CHECK(images.channels == 3 && images.height == kCifarSide && images.width == kCifarSide, "not images of CIFAR's size");
  std::string bytes;
  for (int64_t i = 0; i < images.n; ++i) {
    bytes += static_cast<char>(images.labels[i]);
    const std::span<const uint8_t> image = images.image(i);
    bytes.append(image.begin(), image.end());
  }
  return bytes;
}

void append_images(ImageSet& images, const ImageSet& more) {
  if (images.n == 0) {
    images = more;
    return;
  }
  SPT_CHECK(images.channels == more.channels && images.height == more.height && images.width == more.width, "images of two sizes");
  images.n += more.n;
  images.pixels.insert(images.pixels.end(), more.pixels.begin(), more.pixels.end());
  images.labels.insert(images.labels.end(), more.labels.begin(), more.labels.end());
}

}  // namespace spt::formats
