#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace spt::formats {

/// Downloads `url` (http, https or file) to `file`, going on where an earlier attempt was cut: what came is kept as `file`.part, and the
/// rest is asked for by HTTP Range; a server without ranges sends all of it again.
///
/// `bytes` > 0: the expected size. `sha256` not empty: the expected hash; a .part with another hash is deleted.
/// Errors: DataError naming the URL and the reason (no network, HTTP status, cut off, other content).
void download(const std::string& url, const std::filesystem::path& file, int64_t bytes, const std::string& sha256);

}  // namespace spt::formats
