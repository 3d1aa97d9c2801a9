#include <algorithm>

#include "models/architecture.h"

// One line an architecture, sorted: declares `Architecture <name>();` of models/<name>.cpp and lists it.
#define SPT_ARCHITECTURES(X) \
  X(dlr)                     \
  X(dss)                     \
  X(gru)                     \
  X(linear)                  \
  X(long_conv)               \
  X(lru)                     \
  X(lstm)                    \
  X(mamba)                   \
  X(mega)                    \
  X(pythia)                  \
  X(s4)                      \
  X(s4d)                     \
  X(s5)                      \
  X(ssm_dense)               \
  X(transformer)

namespace spt::models {

#define SPT_DECLARE(name) Architecture name();
SPT_ARCHITECTURES(SPT_DECLARE)
#undef SPT_DECLARE

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> kArchitectures = [] {
    std::vector<Architecture> list;
#define SPT_LIST(name) list.push_back(name());
    SPT_ARCHITECTURES(SPT_LIST)
#undef SPT_LIST
    for (size_t i = 1; i < list.size(); ++i) SPT_CHECK(list[i - 1].name < list[i].name, "architectures are not sorted at {}", list[i].name);
    return list;
  }();
  return kArchitectures;
}

const Architecture& find_architecture(const std::string& name) {
  const auto& all = architectures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Architecture& a) { return a.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> known;
  for (const Architecture& a : all) known.push_back(a.name);
  throw Error("{}", unknown_name("architecture", name, known));
}

}  // namespace spt::models
