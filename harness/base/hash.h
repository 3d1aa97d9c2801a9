#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace spt {

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

/// SHA-256 of a file's content. Errors: Error naming the file if it cannot be read.
std::string sha256_file(const std::filesystem::path& file);

/// SHA-256 of content that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  std::string hex();  ///< ends the computation; call once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// First 8 bytes of SHA-256, little-endian: the seed of a named random stream.
uint64_t hash64(std::string_view bytes);

}  // namespace spt
