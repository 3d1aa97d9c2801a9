#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace spt::reference {

/// One reference case: case.json, its tensors, and what has been compared so far. Nothing in it may stay unused: finish() says what did.
class Case {
 public:
  /// `type`: float64, or float32 for a run in which inputs and weights are rounded to it, outputs alone are compared, each within
  /// float32's tolerance of the case's largest |output|. Errors: Error for a folder that does not hold a case.
  explicit Case(const std::filesystem::path& folder, at::ScalarType type = at::kDouble);

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  const std::string& subject() const { return subject_; }
  const std::string& profile() const { return profile_; }
  at::ScalarType type() const { return type_; }  ///< to compute in
  const nlohmann::json& json() const { return json_; }
  const nlohmann::json& options() const { return json_.at("options"); }
  std::string where(const std::string& part) const { return name_ + ": " + part; }

  bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  at::Tensor tensor(const std::string& name);  ///< marks it as used. Errors: Error if absent
  at::Tensor input(const std::string& name) { return tensor("input." + name); }
  /// The tensors whose names begin with `prefix`, without it, marked as used.
  std::map<std::string, at::Tensor> take(const std::string& prefix);
  bool leaves_gradients();  ///< in float32, where they are not compared: marks them and the loss as used

  double tolerance(const std::string& key) const;  ///< of case.json, `output` where it has no such key; of float32 there

  /// |got - want| <= tolerance * max(1, largest |want|), same shape; in float32 tolerance * largest |want|. A difference is kept, not
  /// thrown.
  void compare(const std::string& what, const at::Tensor& got, const at::Tensor& want, double tolerance, bool absolute = false);
  /// Compares with output.<name>, by tolerance.<key>, or tolerance.sum (absolute) where the name has "sum" in it.
  void compare_output(const std::string& name, const at::Tensor& got, const std::string& key = "output");
  void compare_output(const std::string& name, double got);
  /// Compares values that case.json itself holds under the name of an output.
  void compare_text_output(const std::string& name, const nlohmann::json& got);
  std::string text(const std::string& file) const;                         ///< another file of the case
  void mark_outputs_compared() { outputs_.clear(); }                       ///< where `outputs` names no tensors and no keys
  void check(const std::string& what, bool fine, const std::string& why);  ///< a claim that is no comparison of numbers

  /// Fails for every output, gradient and loss that nobody compared and every tensor that nobody read.
  void finish();

  double worst() const { return worst_; }  ///< largest difference / max(1, largest |want|)
  int compared() const { return compared_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::filesystem::path folder_;
  at::ScalarType type_;
  std::string name_, kind_, subject_, profile_;
  nlohmann::json json_;
  std::map<std::string, at::Tensor> tensors_;
  std::set<std::string> unused_, outputs_;
  double worst_ = 0;
  int compared_ = 0;
  std::vector<std::string> failures_;
};

/// Copies `weights` into the parameters and buffers of the same names. Errors: Error for a name that is missing, left over, or of another
/// shape.
void load_strictly(torch::nn::Module& module, const std::map<std::string, at::Tensor>& weights, const std::string& where);

/// loss = sum(y * cotangent) where the case has a cotangent, its gradients by all parameters and by `inputs` (name -> leaf). In float32
/// they are not compared.
void compare_gradients(Case& c, torch::nn::Module& module, const at::Tensor& y, const std::map<std::string, at::Tensor>& inputs);

}  // namespace spt::reference
