// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/sha256.h"

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

#include "core/base/text.h"

namespace etstream {

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

}  // namespace etstream
