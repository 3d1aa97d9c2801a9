#include <algorithm>

#include "harness/base/error.h"
#include "protocols/protocol.h"

// One line a protocol, sorted: declares `Protocol <name>();` of protocols/<name>.cpp and lists it.
#define SPT_PROTOCOLS(X) \
  X(scratch)             \
  X(spt_causal)          \
  X(spt_masked)

namespace spt::protocols {

#define SPT_DECLARE(name) Protocol name();
SPT_PROTOCOLS(SPT_DECLARE)
#undef SPT_DECLARE

const std::vector<Protocol>& protocols() {
  static const std::vector<Protocol> kProtocols = [] {
    std::vector<Protocol> list;
#define SPT_LIST(name) list.push_back(name());
    SPT_PROTOCOLS(SPT_LIST)
#undef SPT_LIST
    for (size_t i = 1; i < list.size(); ++i) SPT_CHECK(list[i - 1].name < list[i].name, "protocols are not sorted at {}", list[i].name);
    return list;
  }();
  return kProtocols;
}

const Protocol& find_protocol(const std::string& name) {
  const auto& all = protocols();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Protocol& p) { return p.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> known;
  for (const Protocol& p : all) known.push_back(p.name);
  throw Error("{}", unknown_name("protocol", name, known));
}

}  // namespace spt::protocols
