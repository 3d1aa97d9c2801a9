#include "tasks/formats/compressed.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "tasks/formats/cache_folder.h"
#include "tasks/formats/mapped_file.h"

namespace spt::formats {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 16;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, with a gzip header

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    SPT_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& operator*() { return stream_; }

 private:
  z_stream stream_{};
};

std::string unpack_xz(const std::filesystem::path& file, int64_t max_bytes) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_xz(reader.get());
  archive_read_support_format_raw(reader.get());
  const auto require = [&](int status) {
    if (status < ARCHIVE_OK) throw DataError("'{}': not a whole .xz file: {}", file.string(), archive_error_string(reader.get()));
  };
  require(archive_read_open_filename(reader.get(), file.c_str(), kPieceBytes));
  archive_entry* entry = nullptr;
  require(archive_read_next_header(reader.get(), &entry));
  // The raw format hands through what no filter recognises.
  if (archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_XZ) throw DataError("'{}': not an .xz file", file.string());
  std::string content;
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const la_ssize_t n = archive_read_data(reader.get(), piece.data(), piece.size());
    if (n == 0) return content;
    if (n < 0) require(static_cast<int>(n));
    content.append(piece.data(), static_cast<size_t>(n));
    if (static_cast<int64_t>(content.size()) > max_bytes)
      throw DataError("'{}': holds more than the {} bytes that its format allows", file.string(), max_bytes);
  }
}

}  // namespace

std::string unpack_gzip(std::string_view bytes, int64_t max_bytes, std::string_view where) {
  if (bytes.size() > 0xffffffffu) throw DataError("{}: gzip data of more than 4 GiB are not read at once", where);
  Inflater inflater(bytes);
  z_stream& stream = *inflater;
  std::string content;
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    content.append(piece.data(), piece.size() - stream.avail_out);
    if (static_cast<int64_t>(content.size()) > max_bytes)
      throw DataError("{}: holds more than the {} bytes that its format allows", where, max_bytes);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return content;
      inflateReset(&stream);  // the next member; what is no gzip header there is an error
    } else if (status != Z_OK) {
      throw DataError("{}: gzip data are {}", where, status == Z_BUF_ERROR ? "truncated" : "corrupt");
    }
  }
}

std::string pack_gzip(std::string_view content) {
  z_stream stream{};
  SPT_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) == Z_OK, "zlib does not start");
  std::string bytes(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int status = deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  SPT_CHECK(status == Z_STREAM_END, "deflate answered {}", status);
  return bytes;
}

std::string read_unpacked(const std::filesystem::path& file, int64_t max_bytes) {
  const std::string extension = file.extension().string();
  if (!std::filesystem::is_regular_file(file)) throw DataError("cannot read '{}': no such file", file.string());
  if (extension == ".xz") return unpack_xz(file, max_bytes);
  if (extension == ".gz") return unpack_gzip(read_file(file), max_bytes, fmt::format("'{}'", file.string()));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file));
  if (bytes > max_bytes) throw DataError("'{}': {} bytes, more than the {} that its format allows", file.string(), bytes, max_bytes);
  return read_file(file);
}

UnpackedFile load_unpacked(const std::filesystem::path& data_root, const std::filesystem::path& file, int64_t max_bytes) {
  constexpr size_t kDigits = 64;  // the cache begins with the SHA-256 of what follows
  const auto with_hash = [](std::string content) {
    std::string digest = sha256(content);
    return UnpackedFile{std::move(content), std::move(digest)};
  };
  const std::string extension = file.extension().string();
  if (extension != ".gz" && extension != ".xz") return with_hash(read_unpacked(file, max_bytes));
  const std::filesystem::path cache = data_root / "cache" / fmt::format("unpacked-{}.bin", sha256_file(file).substr(0, 16));
  const auto kept = read_cache(cache, [&] {
    const MappedFile mapped(cache);
    UnpackedFile unpacked = with_hash(std::string(mapped.bytes().substr(std::min(kDigits, mapped.bytes().size()))));
    if (mapped.bytes().substr(0, kDigits) != unpacked.sha256) throw Error("its content is not what was written");
    return unpacked;
  });
  if (kept) return std::move(*kept);
  UnpackedFile unpacked = with_hash(read_unpacked(file, max_bytes));
  try {
    if (writable_cache(data_root)) write_file_atomically(cache, unpacked.sha256 + unpacked.content);
  } catch (const Error& error) {  // a cache only saves time
    spdlog::info("the unpacked content of '{}' is not kept: {}", file.string(), error.what());
  }
  return unpacked;
}

std::optional<std::filesystem::path> find_packed(const std::filesystem::path& folder, const std::string& name) {
  for (const char* extension : {"", ".gz", ".xz"}) {
    const std::filesystem::path file = folder / (name + extension);
    if (std::filesystem::is_regular_file(file)) return file;
  }
  return std::nullopt;
}

}  // namespace spt::formats
