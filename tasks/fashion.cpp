#include "tasks/image_task.h"

namespace spt::tasks {

/// Fashion-MNIST as a sequence of pixels or patches: 28 x 28 grey.
Task fashion() {
  return image_task({.name = "fashion",
                     .version = 1,
                     .summary = "Fashion-MNIST, 28 x 28 grey images as sequences, 10 classes",
                     .side = 28,
                     .scaling = formats::fashion_scaling(),
                     .load = formats::load_fashion,
                     .counts = formats::fashion_counts});
}

}  // namespace spt::tasks
