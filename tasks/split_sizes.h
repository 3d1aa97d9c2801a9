#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/base/options.h"
#include "harness/base/rng.h"

namespace spt::tasks {

/// Train, validation, test, in the order of Split.
using SplitSizes = std::array<int64_t, 3>;

/// Which part of the train split a job learns from, beside train_examples; options of every task.
///
/// Source of the published rule: arXiv:2310.02980 and its code, a prefix of RandomState(42).permutation, int(f n) long.
struct SubsetOptions {
  double train_fraction = 1;
  std::string subset_rule = "stream";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit("train_fraction", self.train_fraction,
          OptionInfo{.effect = "share of the train split that is learnt from, nested: int(f n) of n; in place of train_examples",
                     .min = 1e-6,
                     .max = 1});
    visit("subset_rule", self.subset_rule,
          OptionInfo{.effect = "of which permutation a subset of train is the beginning: the job's stream subset's, or the published numpy "
                               "RandomState(42)'s",
                     .choices = {"published", "stream"}});
  }
};

/// How many of `there` train examples are learnt from: `train_examples` (0: all), or the fraction of them.
/// Errors: Error naming `where` if more than there are is asked for, both are given, or the fraction leaves none.
int64_t train_size(const SubsetOptions& options, int64_t train_examples, int64_t there, const std::string& where);

/// What train_examples, validation_examples and test_examples ask of the examples that are `there`; 0 asks for all.
/// Errors: Error naming `where` and the option that asks for more; as train_size().
SplitSizes examples_asked(const SplitSizes& asked, const SplitSizes& there, const std::string& where, const SubsetOptions& options);

/// The first `size` of the permutation of `split` that the options name, so that subsets are nested; all of it unchanged.
/// Random: `subset`, the job's stream of that name; none by the published rule.
std::vector<int64_t> train_members(const SubsetOptions& options, std::span<const int64_t> split, int64_t size, const Stream& subset);

}  // namespace spt::tasks
