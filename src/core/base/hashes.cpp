// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/hashes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zlib.h>
#if defined(__APPLE__)
// The same functions under the same names.
#define COMMON_DIGEST_FOR_OPENSSL
#include <CommonCrypto/CommonDigest.h>
#else
// The functions for this hash alone: linked statically they are 20 KiB, the general ones 4 MiB.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#endif

#include <array>
#include <cstring>

#include "core/base/text.h"

namespace etstream {

struct ContentHasher::State {
  XXH3_state_t xxh3;
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
ContentHasher::ContentHasher(ContentHasher&&) noexcept = default;
ContentHasher& ContentHasher::operator=(ContentHasher&&) noexcept = default;
ContentHasher::~ContentHasher() = default;

void ContentHasher::update(std::span<const std::byte> bytes) noexcept {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

ContentHash ContentHasher::hash() const noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  ContentHash out;
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) noexcept {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes{};
  SHA256_Final(bytes.data(), &state_->context);
  std::string out;
  for (const unsigned char byte : bytes) out += text("{:02x}", byte);
  return out;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  // zlib takes a null pointer for the wish for the checksum of no bytes.
  if (bytes.empty()) return before;
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t joined_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t size) noexcept {
  static_assert(sizeof(z_off_t) == sizeof(size));
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(size)));
}

}  // namespace etstream
