#include "harness/worker/convert.h"

#include <torch/torch.h>

#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/worker/checkpoint.h"

namespace spt::worker {
namespace {

constexpr const char* kWeightsKind = "spt-bench weights 1";
constexpr const char* kExportKind = "spt-bench export 1";

models::NamedTensors without_half_precision(models::NamedTensors tensors) {
  for (auto& [name, tensor] : tensors)
    if (tensor.scalar_type() == torch::kHalf || tensor.scalar_type() == torch::kBFloat16) tensor = tensor.to(torch::kFloat32);
  return tensors;
}

}  // namespace

models::NamedTensors named_tensors(const SafetensorsFile& file) {
  models::NamedTensors tensors;
  for (const auto& [name, raw] : file.tensors) tensors.emplace(name, from_raw(raw));
  return tensors;
}

ConvertAnswer convert(const ConvertQuery& query) {
  const models::PublishedNames& names = models::find_published_names(query.names);
  const models::Architecture& architecture = models::find_architecture(query.architecture);
  const OptionMap options = complete(architecture.options, query.options, fmt::format("architecture {}", architecture.name));
  if (architecture.validate) architecture.validate(options);
  std::error_code none;
  if (std::filesystem::equivalent(query.input, query.output, none)) throw Error("{}: the output would replace the input", query.output);
  const std::string bytes = read_file(query.input);
  const SafetensorsFile file = parse_safetensors(bytes, query.input);
  const models::NamedTensors given = named_tensors(file);
  const models::Renamed renamed =
      query.to_ours ? models::from_published(names, architecture, options, without_half_precision(given), query.drop, query.input)
                    : models::to_published(names, architecture, options, given, query.input);
  SafetensorsFile out;
  for (const auto& [name, tensor] : renamed.tensors) out.tensors.emplace(name, to_raw(tensor));
  out.metadata = {{"kind", query.to_ours ? kWeightsKind : kExportKind}, {"names", names.name}, {"input_sha256", sha256(bytes)}};
  if (query.to_ours) {
    out.metadata[kWeightsArchitecture] = architecture.name;
    out.metadata[kWeightsOptions] = canonical(options_to_json(options));
  } else {
    out.metadata["format"] = "pt";  // readers of published files ask for it
  }
  write_safetensors(query.output, out);
  return {renamed.taken, renamed.dropped, sha256_file(query.output)};
}

}  // namespace spt::worker
