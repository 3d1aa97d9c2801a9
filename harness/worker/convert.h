#pragma once

#include "harness/base/safetensors.h"
#include "harness/catalog.h"
#include "models/architecture.h"
#include "models/interchange.h"

namespace spt::worker {

/// Tensors of a file by name.
models::NamedTensors named_tensors(const SafetensorsFile& file);

/// Writes query.output, a safetensors file under other names. An import holds half precision as float32 and says in its metadata what it
/// was made for; an export has the dtypes of its input. Values are not changed otherwise. Errors: Error for names that are not known, files
/// that cannot be read or do not fit, options that cannot be, and an output that is the input.
ConvertAnswer convert(const ConvertQuery& query);

}  // namespace spt::worker
