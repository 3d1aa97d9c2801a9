#include "tasks/formats/image.h"

#include <fmt/ranges.h>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

std::vector<int64_t> common_divisors(int64_t a, int64_t b) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(a, b); ++d)
    if (a % d == 0 && b % d == 0) divisors.push_back(d);
  return divisors;
}

void check_divides(std::string_view name, int64_t value, int64_t height, int64_t width, std::string_view where) {
  if (value >= 1 && height % value == 0 && width % value == 0) return;
  throw Error("{}: {} = {} does not divide images of {} x {} pixels; possible: {}", where, name, value, height, width,
              fmt::join(common_divisors(height, width), ", "));
}

}  // namespace

ImageSet to_grey(const ImageSet& images) {
  SPT_CHECK(images.channels == 3, "luma of {} channels", images.channels);
  const int64_t plane = images.height * images.width;
  ImageSet grey{.n = images.n, .channels = 1, .height = images.height, .width = images.width, .pixels = {}, .labels = images.labels};
  grey.pixels.resize(static_cast<size_t>(images.n * plane));
  for (int64_t i = 0; i < images.n; ++i) {
    const std::span<const uint8_t> rgb = images.image(i);
    uint8_t* out = grey.pixels.data() + i * plane;
    for (int64_t p = 0; p < plane; ++p) out[p] = luma(rgb[p], rgb[plane + p], rgb[2 * plane + p]);
  }
  return grey;
}

PixelScaling cifar_grey_scaling() { return {{static_cast<float>(122.6 / 255.0)}, {static_cast<float>(61.0 / 255.0)}}; }

PixelScaling cifar_rgb_scaling() { return {{0.4914f, 0.4822f, 0.4465f}, {0.247f, 0.243f, 0.261f}}; }

PixelScaling pathfinder_scaling() { return {{0.5f}, {0.5f}}; }

PixelScaling fashion_scaling() { return {{0.2860f}, {0.3530f}}; }

ImageSteps::ImageSteps(int64_t channels, int64_t height, int64_t width, StepOptions options, const PixelScaling& scaling,
                       std::string_view where)
    : channels_(channels), height_(height), width_(width), options_(options) {
  SPT_CHECK(static_cast<int64_t>(scaling.mean.size()) == channels && scaling.std.size() == scaling.mean.size(),
            "scaling of {} channels for {}", scaling.mean.size(), channels);
  check_divides("pool", options.pool, height, width, where);
  check_divides("patch", options.patch, height / options.pool, width / options.pool, where);
  rows_ = height / (options.pool * options.patch);
  columns_ = width / (options.pool * options.patch);
  const int64_t area = options.pool * options.pool;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t sum = 0; sum <= 255 * area; ++sum) {
      const float unit = static_cast<float>(sum) / static_cast<float>(area) / 255.0f;
      table_.push_back((unit - scaling.mean[c]) / scaling.std[c]);
    }
  }
  const int64_t p = options.patch;
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t column = 0; column < columns_; ++column)
      for (int64_t dy = 0; dy < p; ++dy)
        for (int64_t dx = 0; dx < p; ++dx)
          for (int64_t c = 0; c < channels; ++c)
            corners_.push_back(
                static_cast<int32_t>((c * height + (row * p + dy) * options.pool) * width + (column * p + dx) * options.pool));
}

void ImageSteps::write(std::span<const uint8_t> image, std::span<float> steps) const {
  SPT_CHECK(static_cast<int64_t>(image.size()) == channels_ * height_ * width_, "image of {} bytes", image.size());
  SPT_CHECK(steps.size() == corners_.size(), "room for {} values", steps.size());
  const int64_t k = options_.pool;
  const size_t sums = static_cast<size_t>(255 * k * k + 1);
  for (size_t i = 0; i < steps.size(); ++i) {
    const uint8_t* corner = image.data() + corners_[i];
    size_t sum = 0;
    for (int64_t y = 0; y < k; ++y)
      for (int64_t x = 0; x < k; ++x) sum += corner[y * width_ + x];
    steps[i] = table_[i % static_cast<size_t>(channels_) * sums + sum];
  }
}

std::vector<float> ImageSteps::steps(std::span<const uint8_t> image) const {
  std::vector<float> values(static_cast<size_t>(length() * width()));
  write(image, values);
  return values;
}

}  // namespace spt::formats
