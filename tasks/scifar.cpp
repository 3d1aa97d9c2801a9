#include "tasks/formats/cifar.h"
#include "tasks/image_task.h"

namespace spt::tasks {

/// Sequential CIFAR-10: the pixels' three colours, pixel by pixel (arXiv:2310.02980 and its code).
Task scifar() {
  return image_task(
      {.name = "scifar",
       .version = 1,
       .summary = "CIFAR-10 in colour, 32 x 32 images as sequences of RGB pixels, 10 classes (sequential CIFAR)",
       .side = formats::kCifarSide,
       .channels = 3,
       .scaling = formats::cifar_rgb_scaling(),
       .load = [](const std::filesystem::path& data_root, bool partial) { return formats::load_cifar10(data_root, partial, "scifar"); },
       .counts = formats::cifar10_counts});
}

}  // namespace spt::tasks
