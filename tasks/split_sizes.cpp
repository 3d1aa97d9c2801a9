#include "tasks/split_sizes.h"

#include "harness/base/error.h"
#include "tasks/formats/split.h"
#include "tasks/task.h"

namespace spt::tasks {
namespace {

constexpr uint32_t kPublishedSubsetSeed = 42;

int64_t size_asked(int64_t asked, int64_t there, Split split, const std::string& where) {
  if (asked > there) throw Error("{}: {}_examples = {}, there are {} (0: all)", where, split_name(split), asked, there);
  return asked == 0 ? there : asked;
}

}  // namespace

int64_t train_size(const SubsetOptions& options, int64_t train_examples, int64_t there, const std::string& where) {
  const int64_t size = size_asked(train_examples, there, Split::kTrain, where);
  if (options.train_fraction == 1) return size;
  if (size != there)
    throw Error("{}: train_examples = {} and train_fraction = {}; give one of them", where, train_examples, options.train_fraction);
  const auto part = static_cast<int64_t>(options.train_fraction * static_cast<double>(there));
  if (part == 0 && there > 0) throw Error("{}: train_fraction = {} of {} examples is none", where, options.train_fraction, there);
  return part;
}

SplitSizes examples_asked(const SplitSizes& asked, const SplitSizes& there, const std::string& where, const SubsetOptions& options) {
  return {train_size(options, asked[0], there[0], where), size_asked(asked[1], there[1], Split::kValidation, where),
          size_asked(asked[2], there[2], Split::kTest, where)};
}

std::vector<int64_t> train_members(const SubsetOptions& options, std::span<const int64_t> split, int64_t size, const Stream& subset) {
  const auto all = static_cast<int64_t>(split.size());
  if (options.subset_rule == "stream" || size == all) return formats::subset(split, size, subset);
  SPT_CHECK(size > 0 && size < all, "a subset of {} of {}", size, all);
  std::vector<int64_t> members = formats::numpy_permutation(all, kPublishedSubsetSeed);
  members.resize(static_cast<size_t>(size));
  for (int64_t& i : members) i = split[static_cast<size_t>(i)];
  return members;
}

}  // namespace spt::tasks
