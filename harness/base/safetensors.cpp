#include "harness/base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/json.h"

namespace spt {
namespace {

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

using ByteRange = std::pair<uint64_t, uint64_t>;

/// A list of whole numbers, no other: a fraction or 1e30 would be converted in silence.
template <class Integer>
std::vector<Integer> integers(JsonReader& reader, const char* key) {
  const nlohmann::json& list = reader.at(key);
  const bool whole = list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& n) {
                       return std::is_signed_v<Integer> ? n.is_number_integer() : n.is_number_unsigned();
                     });
  if (!whole) throw Error("{}: {} is no list of whole numbers{}", reader.where(), key, std::is_signed_v<Integer> ? "" : " of at least 0");
  return reader.get<std::vector<Integer>>(key);
}

RawTensor read_tensor(const nlohmann::json& entry, std::string_view data, const std::string& where, std::vector<ByteRange>& ranges) {
  JsonReader reader(entry, where);
  RawTensor tensor;
  tensor.dtype = reader.get<std::string>("dtype");
  tensor.shape = integers<int64_t>(reader, "shape");
  const auto range = integers<uint64_t>(reader, "data_offsets");
  reader.finish();
  if (range.size() != 2 || range[0] > range[1] || range[1] > data.size())
    throw Error("{}: data_offsets lie outside the file ({} bytes of data)", where, data.size());
  uint64_t size = static_cast<uint64_t>(dtype_size(tensor.dtype, where));
  for (const int64_t n : tensor.shape) {
    if (n < 0 || (n > 0 && size > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(n)))
      throw Error("{}: impossible shape", where);
    size *= static_cast<uint64_t>(n);
  }
  if (size != range[1] - range[0]) throw Error("{}: the shape needs {} bytes, the file holds {}", where, size, range[1] - range[0]);
  tensor.bytes = data.substr(range[0], size);
  if (size > 0) ranges.emplace_back(range[0], range[1]);
  return tensor;
}

/// Every byte of the data belongs to one tensor.
void check_cover(std::vector<ByteRange> ranges, uint64_t bytes, std::string_view where) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered)
      throw Error("{}: at byte {} of the data the tensors {}", where, std::min(begin, covered),
                  begin < covered ? "overlap" : "leave a gap");
    covered = end;
  }
  if (covered != bytes) throw Error("{}: {} bytes of data, but the tensors take {}", where, bytes, covered);
}

}  // namespace

int64_t dtype_size(const std::string& dtype, std::string_view where) {
  static const std::map<std::string, int64_t> kSizes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                        {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  const auto found = kSizes.find(dtype);
  if (found == kSizes.end()) throw Error("{}: unknown dtype '{}'", where, dtype);
  return found->second;
}

SafetensorsFile parse_safetensors(std::string_view bytes, std::string_view where) {
  uint64_t header_size = 0;
  if (bytes.size() < 8) throw Error("{}: truncated safetensors file ({} bytes)", where, bytes.size());
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > kMaxHeader || header_size > bytes.size() - 8)
    throw Error("{}: truncated or not a safetensors file (header of {} bytes in {})", where, header_size, bytes.size());
  const nlohmann::json header = parse_json(bytes.substr(8, header_size), fmt::format("{}: header", where));
  if (!header.is_object()) throw Error("{}: header is not an object", where);
  const std::string_view data = bytes.substr(8 + header_size);
  SafetensorsFile content;
  std::vector<ByteRange> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw Error("{}: __metadata__ is not an object", where);
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) throw Error("{}: metadata '{}' is not a string", where, key);
        content.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    content.tensors.emplace(name, read_tensor(entry, data, fmt::format("{}: tensor '{}'", where, name), ranges));
  }
  check_cover(std::move(ranges), data.size(), where);
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

void write_safetensors(const std::filesystem::path& file, const SafetensorsFile& content) {
  write_file_atomically(file, format_safetensors(content));
}

}  // namespace spt
