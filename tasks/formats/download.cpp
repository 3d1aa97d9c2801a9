#include "tasks/formats/download.h"

#include <curl/curl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/base/error.h"
#include "harness/base/hash.h"

namespace spt::formats {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kSilenceSeconds = 60;  // slower than 1 byte/s for so long is a dead connection
constexpr long kHttpNoSuchRange = 416;

struct DownloadSink {
  CURL* handle;
  FILE* file;
  curl_off_t resumed_at;
  bool begun = false;
  bool full = false;  // writing failed
};

/// A server that ignores the range answers 200 and sends the file from its first byte.
size_t write_piece(char* data, size_t size, size_t count, void* user) {
  auto& sink = *static_cast<DownloadSink*>(user);
  if (!sink.begun) {
    sink.begun = true;
    long status = 0;
    curl_easy_getinfo(sink.handle, CURLINFO_RESPONSE_CODE, &status);
    if (sink.resumed_at > 0 && status == 200 && (std::fflush(sink.file) != 0 || ::ftruncate(::fileno(sink.file), 0) != 0)) return 0;
  }
  const size_t written = std::fwrite(data, size, count, sink.file);
  sink.full = written != count;
  return written * size;
}

int64_t size_or_0(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? static_cast<int64_t>(std::filesystem::file_size(file)) : 0;
}

struct Transfer {
  CURLcode code;
  long status;
  std::string reason;
  bool full;
};

Transfer transfer(const std::string& url, const std::filesystem::path& part) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  SPT_CHECK(started == CURLE_OK, "libcurl does not start");
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  SPT_CHECK(curl, "libcurl gives no handle");
  // "a": after a truncation the next piece goes to the new end
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(part.c_str(), "ab"), std::fclose);
  if (!file) throw DataError("cannot write '{}': {}", part.string(), std::strerror(errno));
  DownloadSink sink{.handle = curl.get(), .file = file.get(), .resumed_at = size_or_0(part)};
  std::array<char, CURL_ERROR_SIZE> reason{};
  const auto set = [&](auto option, auto value) {
    SPT_CHECK(curl_easy_setopt(curl.get(), option, value) == CURLE_OK, "libcurl option {}", static_cast<int>(option));
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https,file");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
  set(CURLOPT_ERRORBUFFER, reason.data());
  set(CURLOPT_WRITEFUNCTION, &write_piece);
  set(CURLOPT_WRITEDATA, &sink);
  set(CURLOPT_RESUME_FROM_LARGE, sink.resumed_at);
  const CURLcode code = curl_easy_perform(curl.get());
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  const bool full = sink.full || std::fflush(file.get()) != 0;
  return {code, status, reason[0] != 0 ? reason.data() : curl_easy_strerror(code), full};
}

}  // namespace

void download(const std::string& url, const std::filesystem::path& file, int64_t bytes, const std::string& sha256) {
  const std::filesystem::path part = file.string() + ".part";
  if (bytes > 0 && size_or_0(part) > bytes) std::filesystem::remove(part);  // left by something else
  const bool complete = bytes > 0 && size_or_0(part) == bytes;
  if (!complete) {
    Transfer result = transfer(url, part);
    // Nothing beyond what is there: the part was whole, or of another file. Once more from the start tells.
    const bool no_rest = result.status == kHttpNoSuchRange || result.code == CURLE_BAD_DOWNLOAD_RESUME || result.code == CURLE_RANGE_ERROR;
    if (no_rest && std::filesystem::remove(part)) result = transfer(url, part);
    if (result.full) throw DataError("cannot write '{}': no room, or the disk refuses", part.string());
    if (result.code != CURLE_OK) {
      if (size_or_0(part) == 0) std::filesystem::remove(part);
      throw DataError("{}: {}", url, result.reason);
    }
  }
  if (bytes > 0 && size_or_0(part) != bytes)
    throw DataError("{}: {} bytes came, expected {}; run the same command again to go on", url, size_or_0(part), bytes);
  if (!sha256.empty()) {
    const std::string found = sha256_file(part);
    if (found != sha256) {
      std::filesystem::remove(part);
      throw DataError("{}: other content than published: SHA-256 {} instead of {}", url, found, sha256);
    }
  }
  std::filesystem::rename(part, file);
}

}  // namespace spt::formats
