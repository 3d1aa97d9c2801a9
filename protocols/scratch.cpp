#include "protocols/init.h"
#include "protocols/protocol.h"

namespace spt::protocols {

/// Random parameters, then the task.
Protocol scratch() {
  return {.name = "scratch",
          .version = 1,
          .summary = "train on the task from random parameters",
          .source = "the usual baseline, e.g. arXiv:2011.04006",
          .options = schema_of<InitOptions>(),
          .causal = false,
          .stages = {{.name = "finetune", .objective = "supervised", .options = {}}}};
}

}  // namespace spt::protocols
