#include "tasks/formats/cifar.h"
#include "tasks/image_task.h"

namespace spt::tasks {

/// Long Range Arena's Image: CIFAR-10 in grey (Pillow's luma), pixel by pixel.
Task image() {
  const auto load_grey = [](const std::filesystem::path& data_root, bool partial) {
    formats::ImageData data = formats::load_cifar10(data_root, partial);
    data.train = formats::to_grey(data.train);
    data.test = formats::to_grey(data.test);
    return data;
  };
  return image_task({.name = "image",
                     .version = 1,
                     .summary = "CIFAR-10 in grey, 32 x 32 images as sequences, 10 classes (Long Range Arena's Image)",
                     .side = formats::kCifarSide,
                     .scaling = formats::cifar_grey_scaling(),
                     .load = load_grey,
                     .counts = formats::cifar10_counts});
}

}  // namespace spt::tasks
