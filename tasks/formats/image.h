#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spt::formats {

/// Images with labels: pixels (n, channels, height, width) as bytes, planes R, G, B where there are three.
struct ImageSet {
  int64_t n = 0;
  int64_t channels = 1;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;

  int64_t image_bytes() const { return channels * height * width; }
  std::span<const uint8_t> image(int64_t i) const {
    return std::span(pixels).subspan(static_cast<size_t>(i * image_bytes()), static_cast<size_t>(image_bytes()));
  }
};

/// Pillow's convert("L"): (19595 R + 38470 G + 7471 B + 32768) >> 16.
constexpr uint8_t luma(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((19595u * red + 38470u * green + 7471u * blue + 32768u) >> 16);
}

/// One-channel luma images of three-channel ones; labels are copied.
ImageSet to_grey(const ImageSet& images);

/// Value of a pixel p in channel c: (p/255 - mean[c]) / std[c], each operation in float32.
struct PixelScaling {
  std::vector<float> mean;
  std::vector<float> std;
};

PixelScaling cifar_grey_scaling();  ///< mean 122.6/255, std 61/255 (arXiv:2310.02980 and its code)
PixelScaling cifar_rgb_scaling();   ///< mean (.4914, .4822, .4465), std (.247, .243, .261)
PixelScaling pathfinder_scaling();  ///< mean .5, std .5: (p/255 - .5)/.5
PixelScaling fashion_scaling();     ///< mean .2860, std .3530: of all pixels of the official train set (0.286041, 0.353024)

/// How an image becomes a sequence.
struct StepOptions {
  int64_t pool = 1;   ///< k: first each k x k block of pixels is replaced by its mean
  int64_t patch = 1;  ///< p: then each p x p block is one step of p * p * channels values
};

/// Turns images of one size into sequences of steps.
///
/// Pooling: mean of the k * k bytes of each channel, float(sum) / float(k * k), then scaled as a pixel is; pool = 1 gives exactly the
/// pixel. Steps: blocks in row-major order; inside a step the pixels of the block in row-major order, and of each pixel its channels
/// (channels last). Shapes: image (channels, height, width) bytes -> (length(), width()) float32, row-major. Errors: Error if pool does not
/// divide height and width, or patch the pooled ones, naming the divisors that do.
class ImageSteps {
 public:
  ImageSteps(int64_t channels, int64_t height, int64_t width, StepOptions options, const PixelScaling& scaling, std::string_view where);
  int64_t length() const { return rows_ * columns_; }                            ///< L: steps of a sequence
  int64_t width() const { return options_.patch * options_.patch * channels_; }  ///< values of a step
  void write(std::span<const uint8_t> image, std::span<float> steps) const;      ///< `steps` holds length() * width() values
  std::vector<float> steps(std::span<const uint8_t> image) const;

 private:
  int64_t channels_;
  int64_t height_;
  int64_t width_;
  StepOptions options_;
  int64_t rows_;  // blocks of pool * patch pixels
  int64_t columns_;
  std::vector<int32_t> corners_;  // (length() * width()): offset of the value's pixel, or of the first of its block, in an image
  std::vector<float> table_;      // (channels, 255 k k + 1): scaled value by sum of the block
};

}  // namespace spt::formats
