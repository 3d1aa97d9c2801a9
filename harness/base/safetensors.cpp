#include "harness/base/safetensors.h"

#include <cstring>
#include <limits>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/json.h"

namespace spt {
namespace {

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

RawTensor read_tensor(const nlohmann::json& entry, std::string_view data, const std::string& where) {
  JsonReader reader(entry, where);
  RawTensor tensor;
  tensor.dtype = reader.get<std::string>("dtype");
  tensor.shape = reader.get<std::vector<int64_t>>("shape");
  const auto range = reader.get<std::vector<uint64_t>>("data_offsets");
  reader.finish();
  if (range.size() != 2 || range[0] > range[1] || range[1] > data.size()) throw Error("{}: data_offsets lie outside the file ({} bytes of data)", where, data.size());
  uint64_t size = static_cast<uint64_t>(dtype_size(tensor.dtype));
  for (const int64_t n : tensor.shape) {
    if (n < 0 || (n > 0 && size > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(n))) throw Error("{}: impossible shape", where);
    size *= static_cast<uint64_t>(n);
  }
  if (size != range[1] - range[0]) throw Error("{}: the shape needs {} bytes, the file holds {}", where, size, range[1] - range[0]);
  tensor.bytes = data.substr(range[0], size);
  return tensor;
}

}  // namespace

int64_t dtype_size(const std::string& dtype) {
  static const std::map<std::string, int64_t> kSizes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                        {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  const auto found = kSizes.find(dtype);
  if (found == kSizes.end()) throw Error("safetensors: unknown dtype '{}'", dtype);
  return found->second;
}

SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view where) {
  uint64_t header_size = 0;
  if (bytes.size() < 8) throw Error("{}: truncated safetensors file ({} bytes)", where, bytes.size());
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > kMaxHeader || header_size > bytes.size() - 8) throw Error("{}: truncated or not a safetensors file (header of {} bytes in {})", where, header_size, bytes.size());
  const nlohmann::json header = parse_json(bytes.substr(8, header_size), fmt::format("{}: header", where));
  if (!header.is_object()) throw Error("{}: header is not an object", where);
  const std::string_view data = bytes.substr(8 + header_size);
  SafetensorsFile content;
  size_t total = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) throw Error("{}: metadata '{}' is not a string", where, key);
        content.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    RawTensor tensor = read_tensor(entry, data, fmt::format("{}: tensor '{}'", where, name));
    total += tensor.bytes.size();
    content.tensors.emplace(name, std::move(tensor));
  }
  if (total != data.size()) throw Error("{}: {} bytes of data, but the tensors take {}", where, data.size(), total);
  return content;
}

SafetensorsFile read_safetensors(const std::filesystem::path& file) { return parse_safetensors(read_file(file), file.string()); }

std::string format_safetensors(const SafetensorsFile& content) {
  nlohmann::json header = nlohmann::json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = canonical(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // data are aligned to 8 bytes
  const uint64_t header_size = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &header_size, 8);
  bytes.reserve(8 + header_size + offset);
  bytes += text;
  for (const auto& [name, tensor] : content.tensors) bytes += tensor.bytes;
  return bytes;
}

void write_safetensors(const std::filesystem::path& file, const SafetensorsFile& content) { write_file_atomically(file, format_safetensors(content)); }

}  // namespace spt
