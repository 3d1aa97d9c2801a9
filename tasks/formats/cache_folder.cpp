#include "tasks/formats/cache_folder.h"

#include <unistd.h>

#include "tasks/formats/cache_content.h"

namespace spt::formats {
namespace {

std::string tensors_hash(const SafetensorsFile& file) {
  Sha256 hash;
  hash_tensors(hash, file);
  return hash.hex();
}

}  // namespace

bool may_write(const std::filesystem::path& folder) {
  using std::filesystem::perms;
  const perms anyone = perms::owner_write | perms::group_write | perms::others_write;
  std::error_code problem;
  return (std::filesystem::status(folder, problem).permissions() & anyone) != perms::none && ::access(folder.c_str(), W_OK) == 0;
}

std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& data_root) {
  const std::filesystem::path cache = data_root / "cache";
  std::error_code problem;
  if (!std::filesystem::exists(cache, problem)) {
    if (!may_write(data_root)) return std::nullopt;
    std::filesystem::create_directory(cache, problem);
  }
  return may_write(cache) ? std::optional(cache) : std::nullopt;
}

void hash_tensors(Sha256& hash, const SafetensorsFile& file) {
  for (const auto& [name, tensor] : file.tensors) {
    hash.update(fmt::format("{} {}\n", name, tensor.bytes.size()));
    hash.update(tensor.bytes);
  }
}

const std::string& cache_bytes(const SafetensorsFile& file, const std::string& name, const std::string& dtype) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.dtype != dtype) throw Error("the cache has no column '{}' of type {}", name, dtype);
  return found->second.bytes;
}

const std::string& cache_field(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.metadata.find(name);
  if (found == file.metadata.end()) throw Error("the cache does not say its '{}'", name);
  return found->second;
}

SafetensorsFile read_sealed(const std::filesystem::path& file) {
  SafetensorsFile content = read_safetensors(file);
  const auto stored = content.metadata.find("content_sha256");
  if (stored == content.metadata.end() || !content.metadata.contains("data_hash") || stored->second != tensors_hash(content))
    throw Error("'{}': its content is not what was written", file.string());
  return content;
}

void write_cache(const std::filesystem::path& data_root, const std::filesystem::path& file, SafetensorsFile content,
                 std::string_view what) {
  content.metadata["content_sha256"] = tensors_hash(content);
  try {
    if (writable_cache(data_root)) write_safetensors(file, content);
  } catch (const Error& error) {
    spdlog::info("no cache of the {} is kept: {}", what, error.what());
  }
}

}  // namespace spt::formats
