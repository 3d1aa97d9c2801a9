#include "tests/reference/case.h"

#include <torch/torch.h>

#include <cstring>

#include "harness/base/file.h"
#include "harness/base/safetensors.h"

namespace spt::reference {
namespace {

at::Tensor to_tensor(const RawTensor& raw, const std::string& where) {
  static const std::map<std::string, at::ScalarType> kTypes = {{"F64", torch::kFloat64}, {"F32", torch::kFloat32}, {"I64", torch::kInt64},
                                                               {"I32", torch::kInt32},   {"I8", torch::kInt8},     {"U8", torch::kUInt8},
                                                               {"BOOL", torch::kBool}};
  const auto type = kTypes.find(raw.dtype);
  if (type == kTypes.end()) throw Error("{}: dtype {} is not one that cases use", where, raw.dtype);
  at::Tensor tensor = torch::empty(raw.shape, type->second);
  std::memcpy(tensor.data_ptr(), raw.bytes.data(), raw.bytes.size());
  return tensor;
}

/// Of the largest |output|. A kernel of s4 with many states is a sum of many terms that cancel.
double float32_tolerance(const Case& c) {
  const nlohmann::json& options = c.options();
  const bool large =
      c.kind() == "kernel" && c.subject() == "s4" && options.value("d_state", 0) >= 256 && options.value("length", 0) >= 4000;
  return large ? 1e-3 : 1e-4;
}

bool must_be_compared(const std::string& tensor) {
  return tensor.starts_with("output.") || tensor.starts_with("grad.") || tensor == "loss";
}

}  // namespace

Case::Case(const std::filesystem::path& folder, at::ScalarType type) : folder_(folder), type_(type), name_(folder.filename().string()) {
  json_ = parse_json(read_file(folder / "case.json"), (folder / "case.json").string());
  const auto text = [&](const char* key) {
    if (!json_.contains(key) || !json_.at(key).is_string()) throw Error("{}: case.json has no text '{}'", name_, key);
    return json_.at(key).get<std::string>();
  };
  kind_ = text("kind");
  subject_ = text("subject");
  profile_ = text("profile");
  for (const char* key : {"options", "tolerance"})
    if (!json_.contains(key) || !json_.at(key).is_object()) throw Error("{}: case.json has no object '{}'", name_, key);
  if (text("case") != name_) throw Error("{}: case.json calls itself '{}'", name_, text("case"));
  if (std::filesystem::exists(folder / "case.safetensors")) {
    for (const auto& [tensor, raw] : read_safetensors(folder / "case.safetensors").tensors) {
      at::Tensor value = to_tensor(raw, where(tensor));
      if (!must_be_compared(tensor) && value.is_floating_point()) value = value.to(type_);
      tensors_[tensor] = std::move(value);
      unused_.insert(tensor);
    }
  }
  for (const auto& output : json_.value("outputs", nlohmann::json::array())) outputs_.insert(output.get<std::string>());
}

at::Tensor Case::tensor(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error("{}: the case has no tensor '{}'", name_, name);
  unused_.erase(name);
  return found->second;
}

std::map<std::string, at::Tensor> Case::take(const std::string& prefix) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, value] : tensors_)
    if (name.starts_with(prefix)) {
      found[name.substr(prefix.size())] = value;
      unused_.erase(name);
    }
  return found;
}

double Case::tolerance(const std::string& key) const {
  if (type_ == at::kFloat) return float32_tolerance(*this);
  const nlohmann::json& all = json_.at("tolerance");
  const nlohmann::json value = all.contains(key) ? all.at(key) : all.value("output", nlohmann::json());
  if (!value.is_number()) throw Error("{}: tolerance.{} is not a number", name_, key);
  return value.get<double>();
}

void Case::compare(const std::string& what, const at::Tensor& got, const at::Tensor& want, double tolerance, bool absolute) {
  ++compared_;
  if (got.sizes() != want.sizes()) {
    failures_.push_back(fmt::format("{}: shape [{}], expected [{}]", what, fmt::join(got.sizes(), ", "), fmt::join(want.sizes(), ", ")));
    return;
  }
  if (want.numel() == 0) return;
  const at::Tensor a = got.detach().to(torch::kFloat64), b = want.to(torch::kFloat64);
  const double largest = b.abs().max().item<double>();
  const double scale = type_ == at::kFloat ? largest : absolute ? 1.0 : std::max(1.0, largest);
  const double furthest = (a - b).abs().max().item<double>(), difference = furthest == 0 ? 0 : furthest / scale;  // NaN stays NaN in max()
  if (!(difference <= worst_)) worst_ = difference;
  if (!(difference <= tolerance)) failures_.push_back(fmt::format("{}: differs by {:.3g}, allowed {:.3g}", what, difference, tolerance));
}

void Case::compare_output(const std::string& name, const at::Tensor& got, const std::string& key) {
  outputs_.erase(name);
  const bool sum = name.find("sum") != std::string::npos && json_.at("tolerance").contains("sum");
  compare("output." + name, got, tensor("output." + name), tolerance(sum ? "sum" : key), sum);
}

void Case::compare_output(const std::string& name, double got) { compare_output(name, torch::tensor(got, torch::kFloat64)); }

void Case::compare_text_output(const std::string& name, const nlohmann::json& got) {
  outputs_.erase(name);
  if (!json_.contains(name)) throw Error("{}: case.json has no '{}'", name_, name);
  check(name, got == json_.at(name), fmt::format("is {}, expected {}", got.dump(), json_.at(name).dump()));
}

bool Case::leaves_gradients() {
  if (type_ == at::kDouble) return false;
  for (const char* prefix : {"grad.", "loss", "input.cotangent"}) take(prefix);
  return true;
}

std::string Case::text(const std::string& file) const { return read_file(folder_ / file); }

void Case::check(const std::string& what, bool fine, const std::string& why) {
  ++compared_;
  if (!fine) failures_.push_back(fmt::format("{}: {}", what, why));
}

void Case::finish() {
  for (const std::string& tensor : unused_)
    failures_.push_back(fmt::format("{} was {}", tensor, must_be_compared(tensor) ? "not compared" : "not read"));
  for (const std::string& output : outputs_) failures_.push_back(fmt::format("output '{}' was not compared", output));
  if (compared_ == 0) failures_.push_back("nothing was compared");
}

void load_strictly(torch::nn::Module& module, const std::map<std::string, at::Tensor>& weights, const std::string& where) {
  const torch::NoGradGuard no_grad;
  auto left = weights;
  const auto load = [&](const std::string& name, at::Tensor target) {
    const auto found = left.find(name);
    if (found == left.end()) throw Error("{}: no weight '{}', which the network has", where, name);
    if (found->second.sizes() != target.sizes())
      throw Error("{}: weight '{}' has shape [{}], the network's [{}]", where, name, fmt::join(found->second.sizes(), ", "),
                  fmt::join(target.sizes(), ", "));
    target.copy_(found->second);
    left.erase(found);
  };
  for (const auto& parameter : module.named_parameters()) load(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) load(buffer.key(), buffer.value());
  for (const auto& [name, value] : left) throw Error("{}: weight '{}' is none of the network's", where, name);
}

void compare_gradients(Case& c, torch::nn::Module& module, const at::Tensor& y, const std::map<std::string, at::Tensor>& inputs) {
  if (!c.has("input.cotangent") || c.leaves_gradients()) return;
  const at::Tensor loss = (y * c.input("cotangent")).sum();
  c.compare("loss", loss, c.tensor("loss"), c.tolerance("loss"));
  loss.backward();
  const auto compare = [&](const std::string& name, const at::Tensor& leaf) {
    const at::Tensor gradient = leaf.grad().defined() ? leaf.grad() : torch::zeros_like(leaf);
    c.compare("grad." + name, gradient, c.tensor("grad." + name), c.tolerance("gradient"));
  };
  for (const auto& parameter : module.named_parameters()) compare(parameter.key(), parameter.value());
  for (const auto& [name, leaf] : inputs) compare("input." + name, leaf);
}

}  // namespace spt::reference
