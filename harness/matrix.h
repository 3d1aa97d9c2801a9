#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/options.h"

namespace spt {

/// A value and where it was given: "quick.toml:31:1 [[override]]".
struct Setting {
  OptionValue value;
  std::string origin;
};
using Settings = std::map<std::string, Setting>;
OptionMap values(const Settings& settings);

enum class BudgetUnit { kSteps, kEpochs, kExamples, kTokens };
enum class Basis { kSteps, kExamples, kTokens, kFlops };  ///< what scratch@(P+F) is matched by
std::string_view basis_name(Basis basis);

struct Budget {
  BudgetUnit unit = BudgetUnit::kSteps;
  double amount = 0;
  std::string origin;
};

/// F, P and T of definitions.md 3; an [[override]] gives only those that it changes.
struct Budgets {
  std::optional<Budget> finetune, pretrain, total;
  std::optional<Setting> share;  ///< P as a share of P + F, a float in (0, 1)
};

/// A registered thing under the label of this matrix.
struct MatrixComponent {
  std::string name, label;
  std::string size;  ///< preset of an architecture; ""
  Settings options;  ///< those that were given
  std::string origin;
  std::optional<Setting> checkpoint = {};  ///< of an architecture: file of weights that it starts from
};

/// Values for the stages it selects; "" selects all. The most specific wins.
struct Override {
  std::string architecture, task, protocol, stage;  ///< labels, and pretrain | finetune
  Settings train;
  Budgets budget;  ///< only with `task` alone
  std::string origin;

  int specificity() const { return !architecture.empty() + !task.empty() + !protocol.empty() + !stage.empty(); }
  bool selects(std::string_view of_architecture, std::string_view of_task, std::string_view of_protocol, std::string_view of_stage) const;
};

/// A matrix file, checked as far as that can be done without the catalog (docs/matrix.md has every key).
struct Matrix {
  std::string name;
  std::string profile = "fair";
  std::vector<uint64_t> seeds;
  std::string reference;  ///< label of an architecture
  std::vector<MatrixComponent> protocols, architectures, tasks;
  Budgets budgets;
  std::vector<Basis> match = {Basis::kSteps};
  int64_t evaluations = 20;  ///< E
  Settings train;
  std::map<std::string, Settings> stages;  ///< [stage.pretrain], [stage.finetune]
  std::vector<Override> overrides;
  std::map<std::string, uint64_t> streams;
  double margin = 0;      ///< [analysis]: of equivalence, in the metric's unit; 0: none stated
  int64_t planned_n = 0;  ///< [analysis]: seeds decided on beforehand; 0: as many as `seeds`
  std::string text, file;

  bool total_mode() const { return budgets.total.has_value(); }
};

/// Errors: Error "<file>:<line>:<column>: ..." for unknown keys (with a suggestion), wrong types, impossible values.
Matrix parse_matrix(std::string_view text, const std::string& file);

/// SHA-256 of what decides the analysis: reference, margin, family, primary statistic, planned n.
std::string analysis_hash(const Matrix& matrix);

}  // namespace spt
