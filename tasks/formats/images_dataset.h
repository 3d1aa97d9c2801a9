#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/image.h"
#include "tasks/formats/manifest.h"

namespace spt::formats {

/// All examples of an image task, in the order of its files.
struct ImageData {
  ImageSet train;
  ImageSet test;
  std::vector<FileIdentity> files;  ///< those that were read
  std::string data_hash;            ///< of them
  bool official = false;            ///< the whole set as published
};

/// How many images files of known sizes hold.
struct ImageCounts {
  int64_t train = 0;
  int64_t test = 0;
};
ImageCounts fashion_counts(std::span<const FileIdentity> files);
ImageCounts cifar10_counts(std::span<const FileIdentity> files);

/// Reads Fashion-MNIST: 28 x 28 grey, 10 classes, 60,000 train and 10,000 test images.
///
/// `partial` takes files that are not the published ones (same names and image size, any number of images).
/// Errors: DataError saying what is missing or different and which command or option helps; DataError for damaged files.
ImageData load_fashion(const std::filesystem::path& data_root, bool partial);

/// Reads CIFAR-10's binary version: 32 x 32 RGB, 10 classes, 50,000 train images in five files and 10,000 test images.
///
/// `partial` runs on those of data_batch_1..5.bin that exist (at least one, and test_batch.bin), published or not.
/// `task`: whose manifest it is, image (grey) or scifar (RGB); the files are the same.
/// Errors: as load_fashion().
ImageData load_cifar10(const std::filesystem::path& data_root, bool partial, std::string_view task = "image");

}  // namespace spt::formats
