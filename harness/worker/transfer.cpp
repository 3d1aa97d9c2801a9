#include "harness/worker/transfer.h"

#include <torch/torch.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/worker/checkpoint.h"

namespace spt::worker {
namespace {

bool of_head(std::string_view name) {
  return name.starts_with("head.");
}

bool has_indicator_column(const at::Tensor& source, const at::Tensor& target) {
  return source.dim() == 2 && target.dim() == 2 && source.size(0) == target.size(0) && source.size(1) == target.size(1) + 1;
}

}  // namespace

results::TransferEvent transfer(const SafetensorsFile& checkpoint, models::Model& model, std::string_view where) {
  const torch::NoGradGuard no_grad;
  results::TransferEvent audit;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // (target, source): nothing is written before all of it fits
  const auto targets = model_tensors(model);
  for (const auto& [name, target] : targets) {
    if (of_head(name)) {
      audit.redrawn.push_back(name);
      continue;
    }
    const auto found = checkpoint.tensors.find(name);
    if (found == checkpoint.tensors.end())
      throw Error("{}: tensor '{}' is missing; the stage before was trained with another architecture", where, name);
    at::Tensor source = from_raw(found->second);
    if (source.scalar_type() != target.scalar_type())
      throw Error("{}: tensor '{}' is {}, the model has {}", where, name, found->second.dtype, to_raw(target).dtype);
    if (source.sizes() == target.sizes()) {
      audit.copied.push_back(name);
    } else if (name == "encoder.weight" && has_indicator_column(source, target)) {
      audit.sliced.push_back(name);
      source = source.slice(1, 0, target.size(1));
    } else {
      throw Error("{}: tensor '{}' is {}, the model has {}", where, name, fmt::join(source.sizes(), "x"), fmt::join(target.sizes(), "x"));
    }
    copies.emplace_back(target, source);
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (of_head(name))
      audit.dropped.push_back(name);
    else if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.first == name; }))
      throw Error("{}: the model has no tensor '{}'", where, name);
  }
  for (auto& [target, source] : copies) target.copy_(source);
  return audit;
}

}  // namespace spt::worker
