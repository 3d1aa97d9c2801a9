#include "protocols/protocol.h"
#include "protocols/spt_options.h"

namespace spt::protocols {
namespace {

struct SptMaskedOptions : SptOptions {
  double ratio = 0;
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    SptOptions::visit(self, visit);
    visit("ratio", self.ratio,
          OptionInfo{.effect = "share of real positions that are hidden; 0: the task's own", .min = 0, .max = 1, .stage = "pretrain"});
  }
};

}  // namespace

/// Hide positions of the task's own inputs and fill them in; then the task.
Protocol spt_masked() {
  return {.name = "spt-masked",
          .version = 1,
          .summary = "self pretraining: fill in hidden positions of the task's own train inputs, then train on the task",
          .source = "arXiv:2310.02980 section 2",
          .options = schema_of<SptMaskedOptions>(),
          .causal = false,
          .stages = {{.name = "pretrain", .objective = "masked", .options = {{"ratio", "ratio"}}},
                     {.name = "finetune", .objective = "supervised", .options = {}}}};
}

}  // namespace spt::protocols
