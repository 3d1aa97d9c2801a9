#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tasks/formats/image.h"

namespace spt::formats {

/// Labelled images of one size, whether they are in memory, on disk or drawn when they are needed. Safe to read from several threads at
/// once.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  virtual uint8_t label(int64_t i) const = 0;
  /// Pixels of image i: those of the source, or written into `scratch`. Valid until scratch is used again.
  virtual std::span<const uint8_t> image(int64_t i, std::vector<uint8_t>& scratch) const = 0;
};

/// Images in memory.
class StoredImages : public ImageSource {
 public:
  explicit StoredImages(std::shared_ptr<const ImageSet> images) : images_(std::move(images)) {}
  int64_t size() const override { return images_->n; }
  uint8_t label(int64_t i) const override { return images_->labels[i]; }
  std::span<const uint8_t> image(int64_t i, std::vector<uint8_t>&) const override { return images_->image(i); }

 private:
  std::shared_ptr<const ImageSet> images_;
};

/// Images that are made when they are first asked for, and kept as long as all that are kept fit into `budget` bytes; others are made
/// again.
class MadeImages : public ImageSource {
 public:
  /// `make(i)` is called from several threads at once, and must be a function of i.
  MadeImages(std::vector<uint8_t> labels, std::function<std::vector<uint8_t>(int64_t)> make, int64_t budget);
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  uint8_t label(int64_t i) const override { return labels_[i]; }
  std::span<const uint8_t> image(int64_t i, std::vector<uint8_t>& scratch) const override;

 private:
  const std::vector<uint8_t> labels_;
  const std::function<std::vector<uint8_t>(int64_t)> make_;
  const int64_t budget_;
  mutable std::mutex mutex_;
  mutable int64_t kept_bytes_ = 0;
  mutable std::vector<std::unique_ptr<const std::vector<uint8_t>>> kept_;  // an entry never changes once it is there
};

}  // namespace spt::formats
