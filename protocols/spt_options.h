#pragma once

#include <string>

#include "harness/base/options.h"
#include "protocols/init.h"

namespace spt::protocols {

/// Settings of self pretraining that all its objectives share.
struct SptOptions : InitOptions {
  std::string pretrain_inputs = "subset";
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    InitOptions::visit(self, visit);
    visit("pretrain_inputs", self.pretrain_inputs,
          OptionInfo{.effect = "inputs that pretraining reads: those of the labelled subset, or all of train",
                     .choices = {"subset", "train"}});
  }
};

}  // namespace spt::protocols
