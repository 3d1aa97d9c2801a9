#include "protocols/protocol.h"

namespace spt::protocols {

/// Random parameters, then the task.
Protocol scratch() {
  return {.name = "scratch",
          .version = 1,
          .summary = "train on the task from the architecture's own random init",
          .source = "the usual baseline, e.g. arXiv:2011.04006",
          .options = {},
          .causal = false,
          .stages = {{.name = "finetune", .objective = "supervised", .options = {}}}};
}

}  // namespace spt::protocols
