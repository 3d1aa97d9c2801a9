#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/catalog.h"
#include "harness/job.h"
#include "harness/matrix.h"

namespace spt {

/// Where one effective value comes from, for `plan --show`.
struct Origin {
  std::string name;  ///< architecture.d_model, stage.pretrain.lr, ...
  OptionValue value;
  std::string origin;
};
using Origins = std::vector<Origin>;

/// A protocol as a matrix uses it.
struct ProtocolUse {
  const ProtocolEntry* entry = nullptr;
  std::string label;  ///< its name gets "+unlabelled" where pretraining reads all train inputs; a label of the matrix stays
  OptionMap options;  ///< complete
  std::string init = "default";
  std::string init_origin = "default";
  std::string inputs = "subset";
  bool pretrains() const { return entry->stages.size() > 1; }
};

/// Finds a registered thing. Errors: Error that begins with `where` and names the known ones.
const ArchitectureEntry& find_architecture_entry(const Catalog& catalog, const std::string& name, std::string_view where);
const TaskEntry& find_task_entry(const Catalog& catalog, const std::string& name, std::string_view where);
const ObjectiveEntry& find_objective_entry(const Catalog& catalog, const std::string& name, std::string_view where);

/// Options over size preset over defaults; then, for a causal protocol, the architecture's causal options. Errors: Error at the place of
/// the value.
ComponentSpec architecture_spec(const Catalog& catalog, const MatrixComponent& component, bool causal, Origins* origins = nullptr);
ComponentSpec task_spec(const Catalog& catalog, const MatrixComponent& component, Origins* origins = nullptr);
ProtocolUse protocol_use(const Catalog& catalog, const MatrixComponent& component);

/// The objective of one stage of a protocol; a `ratio` of 0 becomes the task's own mask ratio.
ComponentSpec objective_spec(const Catalog& catalog, const ProtocolUse& protocol, const StageEntry& stage, double mask_ratio,
                             Origins* origins = nullptr);

/// Training values of any stage of a matrix: override > [stage.*] > [train] > recipe > default; among overrides, and among recipes, the
/// most specific wins.
class TrainValues {
 public:
  /// Errors: Error for a recipe that cannot be read (file "<architecture> recipe").
  TrainValues(const Matrix& matrix, const Catalog& catalog);
  /// Errors: Error naming both places where two equally specific overrides disagree.
  TrainOptions train(const MatrixComponent& architecture, const MatrixComponent& task, const std::string& protocol,
                     const std::string& stage, Origins* origins = nullptr) const;

 private:
  std::map<std::string, Setting> settings(const MatrixComponent& architecture, const MatrixComponent& task, const std::string& protocol,
                                          const std::string& stage) const;
  const Matrix& matrix_;
  std::map<std::string, std::vector<Override>> recipes_;  ///< by registered name; `task` is a registered name too
};

}  // namespace spt
