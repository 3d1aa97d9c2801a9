#include "harness/worker/transfer.h"

#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/catalog.h"
#include "harness/worker/checkpoint.h"

namespace spt::worker {
namespace {

bool of_head(std::string_view name) { return name.starts_with("head."); }

bool of_encoder(std::string_view name) { return name.starts_with("encoder."); }

bool has_indicator_column(const at::Tensor& source, const at::Tensor& target) {
  return source.dim() == 2 && target.dim() == 2 && source.size(0) == target.size(0) && source.size(1) == target.size(1) + 1;
}

bool may_be_sliced(const std::string& name, const at::Tensor& source, const at::Tensor& target) {
  return name == "encoder.weight" && has_indicator_column(source, target);
}

bool is_one_of(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::string& name) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
}

/// Copies what is not `redrawn` into the model, all or nothing.
class Transfer {
 public:
  using Kept = std::function<bool(std::string_view name)>;
  Transfer(const SafetensorsFile& checkpoint, models::Model& model, std::string_view where)
      : checkpoint_(checkpoint), targets_(model_tensors(model)), where_(where) {}

  /// `kept`: tensors of which the model's own draw stays. `convert`: floating-point values take the model's dtype.
  results::TransferEvent run(const Kept& kept, bool convert) {
    const torch::NoGradGuard no_grad;
    results::TransferEvent audit;
    std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // (target, source): nothing is written before all of it fits
    for (const auto& [name, target] : targets_) {
      if (kept(name)) {
        audit.redrawn.push_back(name);
        continue;
      }
      const at::Tensor source = source_of(name, target, convert);
      const bool equal = source.sizes() == target.sizes();
      (equal ? audit.copied : audit.sliced).push_back(name);
      copies.emplace_back(target, equal ? source : source.slice(1, 0, target.size(1)));
    }
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      if (kept(name)) audit.dropped.push_back(name);
      else if (!is_one_of(targets_, name)) throw Error("{}: the model has no tensor '{}'", where_, name);
    }
    for (auto& [target, source] : copies) target.copy_(source);
    return audit;
  }

  /// Whether both sides have the same tensors of an encoder, which fit.
  bool encoder_fits() const {
    for (const auto& [name, target] : targets_) {
      if (!of_encoder(name)) continue;
      const auto found = checkpoint_.tensors.find(name);
      if (found == checkpoint_.tensors.end()) return false;
      const at::Tensor source = from_raw(found->second);
      if (source.sizes() != target.sizes() && !may_be_sliced(name, source, target)) return false;
    }
    return std::all_of(checkpoint_.tensors.begin(), checkpoint_.tensors.end(),
                       [&](const auto& t) { return !of_encoder(t.first) || is_one_of(targets_, t.first); });
  }

 private:
  at::Tensor source_of(const std::string& name, const at::Tensor& target, bool convert) const {
    const auto found = checkpoint_.tensors.find(name);
    if (found == checkpoint_.tensors.end())
      throw Error("{}: tensor '{}' is missing; the weights belong to another architecture", where_, name);
    at::Tensor source = from_raw(found->second);
    if (convert && source.is_floating_point() && target.is_floating_point()) source = source.to(target.scalar_type());
    if (source.scalar_type() != target.scalar_type())
      throw Error("{}: tensor '{}' is {}, the model has {}", where_, name, found->second.dtype, to_raw(target).dtype);
    if (source.sizes() != target.sizes() && !may_be_sliced(name, source, target))
      throw Error("{}: tensor '{}' is {}, the model has {}", where_, name, fmt::join(source.sizes(), "x"), fmt::join(target.sizes(), "x"));
    return source;
  }

  const SafetensorsFile& checkpoint_;
  const std::vector<std::pair<std::string, at::Tensor>> targets_;
  const std::string_view where_;
};

}  // namespace

results::TransferEvent transfer(const SafetensorsFile& checkpoint, models::Model& model, std::string_view where) {
  return Transfer(checkpoint, model, where).run(of_head, false);
}

results::TransferEvent transfer_given(const SafetensorsFile& weights, models::Model& model, std::string_view where) {
  Transfer given(weights, model, where);
  const bool encoder = given.encoder_fits();
  return given.run([&](std::string_view name) { return of_head(name) || (!encoder && of_encoder(name)); }, true);
}

void check_made_for(const SafetensorsFile& weights, const ComponentSpec& job, const models::Architecture& architecture,
                    std::string_view where) {
  const auto made_for = weights.metadata.find(kWeightsArchitecture), options = weights.metadata.find(kWeightsOptions);
  if (made_for == weights.metadata.end() || options == weights.metadata.end()) return;
  if (made_for->second != job.name) throw Error("{}: weights of architecture '{}', the job has '{}'", where, made_for->second, job.name);
  const std::string place = fmt::format("{}: options", where);
  for (const auto& [name, value] : options_from_json(parse_json(options->second, place), place)) {
    if (architecture.causal.contains(name)) continue;
    const auto found = job.options.find(name);
    if (found == job.options.end()) throw Error("{}: made for option {}, which architecture '{}' does not have", where, name, job.name);
    if (found->second != value) throw Error("{}: made for {} = {}, the job has {}", where, name, to_text(value), to_text(found->second));
  }
}

}  // namespace spt::worker
