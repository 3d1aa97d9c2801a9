#include "tasks/formats/image_source.h"

#include "harness/base/error.h"

namespace spt::formats {

MadeImages::MadeImages(std::vector<uint8_t> labels, std::function<std::vector<uint8_t>(int64_t)> make, int64_t budget)
    : labels_(std::move(labels)), make_(std::move(make)), budget_(budget), kept_(labels_.size()) {}

std::span<const uint8_t> MadeImages::image(int64_t i, std::vector<uint8_t>& scratch) const {
  SPT_CHECK(i >= 0 && i < size(), "image {} of {}", i, size());
  {
    const std::lock_guard lock(mutex_);
    if (kept_[i]) return *kept_[i];
  }
  scratch = make_(i);
  const std::lock_guard lock(mutex_);
  if (!kept_[i]) {  // two threads may have made the same one
    const auto bytes = static_cast<int64_t>(scratch.size());
    if (kept_bytes_ + bytes > budget_) return scratch;
    kept_bytes_ += bytes;
    kept_[i] = std::make_unique<const std::vector<uint8_t>>(scratch);
  }
  return *kept_[i];
}

}  // namespace spt::formats
