#include "harness/base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "harness/base/error.h"

namespace spt {
namespace {

using Digest = std::array<unsigned char, 32>;

/// Fetched once: EVP_sha256() looks the implementation up at each digest, which costs more than a short text does.
const EVP_MD* sha256_method() {
  static EVP_MD* const kMethod = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  SPT_CHECK(kMethod, "libcrypto has no SHA-256");
  return kMethod;
}

Digest digest_of(std::string_view bytes) {
  Digest digest;
  unsigned size = 0;
  SPT_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, sha256_method(), nullptr) == 1, "SHA-256 failed");
  return digest;
}

std::string to_hex(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * digest.size(), '0');
  for (size_t i = 0; i < digest.size(); ++i) {
    text[2 * i] = kDigits[digest[i] >> 4];
    text[2 * i + 1] = kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SPT_CHECK(state_->context && EVP_DigestInit_ex(state_->context, sha256_method(), nullptr) == 1, "SHA-256 failed");
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  SPT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::hex() {
  Digest digest;
  unsigned size = 0;
  SPT_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1, "SHA-256 failed");
  return to_hex(digest);
}

std::string sha256(std::string_view bytes) { return to_hex(digest_of(bytes)); }

std::string sha256_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read '{}': {}", file.string(), std::strerror(errno));
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
    hash.update({buffer.data(), static_cast<size_t>(in.gcount())});
  if (in.bad()) throw Error("cannot read '{}' to its end: {}", file.string(), std::strerror(errno));
  return hash.hex();
}

uint64_t hash64(std::string_view bytes) {
  const Digest digest = digest_of(bytes);
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | digest[i];
  return value;
}

}  // namespace spt
