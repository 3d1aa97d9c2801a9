#include "tasks/split_sizes.h"

#include "harness/base/error.h"
#include "tasks/task.h"

namespace spt::tasks {

SplitSizes examples_asked(const SplitSizes& asked, const SplitSizes& there, const std::string& where) {
  SplitSizes sizes = asked;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (asked[k] > there[k])
      throw Error("{}: {}_examples = {}, there are {} (0: all)", where, split_name(static_cast<Split>(k)), asked[k], there[k]);
    if (asked[k] == 0) sizes[k] = there[k];
  }
  return sizes;
}

}  // namespace spt::tasks
