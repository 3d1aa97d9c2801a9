#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spt {

/// One tensor of a safetensors file. dtype in the format's spelling: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL.
struct RawTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;  ///< little-endian, row-major
  bool operator==(const RawTensor&) const = default;
};

struct SafetensorsFile {
  std::map<std::string, RawTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Bytes of one element. Errors: Error naming `where` for a dtype that the format does not have.
int64_t dtype_size(const std::string& dtype, std::string_view where);

/// Errors: Error naming the file for anything that is not a whole, consistent file (truncated, overlapping, shape and size at odds).
SafetensorsFile read_safetensors(const std::filesystem::path& file);
SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view where);

std::string format_safetensors(const SafetensorsFile& content);
void write_safetensors(const std::filesystem::path& file, const SafetensorsFile& content);  ///< atomically

}  // namespace spt
