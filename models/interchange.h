#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/architecture.h"

namespace spt::models {

/// Whole networks by the names of their tensors.
using NamedTensors = std::map<std::string, at::Tensor>;

/// Whose names a file can have beside ours.
struct PublishedNames {
  std::string name;                        ///< as `--from` and `--to` take it
  std::string source;                      ///< code whose state dict it is
  std::vector<std::string> architectures;  ///< ours that have counterparts there
};
const std::vector<PublishedNames>& published_names();                 ///< sorted by name
const PublishedNames& find_published_names(const std::string& name);  ///< Errors: Error with the known names

/// A network under other names.
struct Renamed {
  NamedTensors tensors;
  std::vector<std::pair<std::string, std::string>> taken;  ///< (name before, name after), one a tensor of `tensors` or a part of it
  std::vector<std::string> dropped;                        ///< names before that have no counterpart: tables of positions, other heads
};

/// Published names to ours (encoder.*, body.*, head.*), for a body of these options.
///
/// gpt-neox: query_key_value (3D, D), in which the rows of head h are its query, key and value, becomes the three matrices of Attention.
/// Values are copies of the same dtype. A trailing axis of length 1 that the body does not have (transposed linear maps) is removed.
/// `drop`: published names to leave out although they are not known.
/// Errors: Error, beginning with `where`, for an architecture without published names, a name that is neither known nor dropped, a tensor
/// of the body that is missing, left over or of another shape. Source: reference README files (not-from-scratch), transformers'
/// GPTNeoXModel (gpt-neox).
Renamed from_published(const PublishedNames& names, const Architecture& architecture, const OptionMap& options,
                       const NamedTensors& published, const std::vector<std::string>& drop, const std::string& where);

/// The way back: to_published(from_published(x)) is x without what was dropped.
/// Errors: Error for an architecture without published names, or tensors that are not those of a body of these options.
Renamed to_published(const PublishedNames& names, const Architecture& architecture, const OptionMap& options, const NamedTensors& ours,
                     const std::string& where);

}  // namespace spt::models
