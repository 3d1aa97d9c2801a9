#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/options.h"

namespace spt::protocols {

/// One stage of a protocol, before budgets and recipes are known.
struct StageTemplate {
  std::string name;                                          ///< pretrain | finetune
  std::string objective;                                     ///< registered objective
  std::vector<std::pair<std::string, std::string>> options;  ///< (option of the objective, option of the protocol that gives its value)
};

/// How parameters get their prior, then learn. Data, not code: an init and stages. The last stage is the supervised one.
struct Protocol {
  std::string name;
  int version = 1;
  std::string summary;
  std::string source;
  std::vector<OptionSchema> options;
  bool causal = false;  ///< the architecture's causal options are set, in every stage and in its own scratch arms
  std::vector<StageTemplate> stages;
};

const std::vector<Protocol>& protocols();                ///< sorted by name
const Protocol& find_protocol(const std::string& name);  ///< Errors: Error with the known names

/// Embedded protocols/recipes/*.toml, (architecture, text).
const std::vector<std::pair<std::string_view, std::string_view>>& recipe_files();

}  // namespace spt::protocols
