#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/safetensors.h"

namespace spt::formats {

/// Whether files may be made in a folder. Root may write anywhere; a folder that is marked read-only is left alone nevertheless.
bool may_write(const std::filesystem::path& folder);

/// `<data root>/cache`, made if it is not there; nothing where it may not be written, as in a data root that many users share.
std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& data_root);

/// Adds names, sizes and bytes of all tensors.
void hash_tensors(Sha256& hash, const SafetensorsFile& file);

/// Content of a cache that write_cache wrote. Errors: Error where it is not what was written.
SafetensorsFile read_sealed(const std::filesystem::path& file);

/// `make` of a cache's content; nothing where there is none, or a damaged one: it can always be made again, and the log says so.
template <class Make>
auto read_cache(const std::filesystem::path& file, Make&& make) -> std::optional<decltype(make())> {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    return make();
  } catch (const Error& error) {
    spdlog::warn("the cache '{}' is damaged and is made again: {}", file.string(), error.what());
    return std::nullopt;
  }
}

/// Seals the content with a hash over its tensors and writes it, where the data root may be written: a cache only saves time. `what`: of
/// what it is, for the log.
void write_cache(const std::filesystem::path& data_root, const std::filesystem::path& file, SafetensorsFile content, std::string_view what);

}  // namespace spt::formats
