#include "protocols/protocol.h"
#include "protocols/spt_options.h"

namespace spt::protocols {

/// Predict the next position of the task's own inputs; then the task. The model is causal in both stages.
Protocol spt_causal() {
  return {
      .name = "spt-causal",
      .version = 1,
      .summary =
          "self pretraining: predict the next position of the task's own train inputs, then train on the task; a causal model throughout",
      .source = "arXiv:2310.02980 section 2",
      .options = schema_of<SptOptions>(),
      .causal = true,
      .stages = {{.name = "pretrain", .objective = "causal", .options = {}},
                 {.name = "finetune", .objective = "supervised", .options = {}}}};
}

}  // namespace spt::protocols
