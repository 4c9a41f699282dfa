// SPDX-License-Identifier: BSD-3-Clause
#include <windows.h>
// After the header that it needs.
#include <bcrypt.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/sha256.h"
#include "base/text.h"

namespace etstream {

struct Sha256::State {
  BCRYPT_HASH_HANDLE hash = nullptr;
  ~State() {
    if (hash != nullptr) ::BCryptDestroyHash(hash);
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // Nothing else is wrong with these arguments.
  if (::BCryptCreateHash(BCRYPT_SHA256_ALG_HANDLE, &state_->hash, nullptr, 0, nullptr, 0, 0) != 0) {
    throw std::bad_alloc();
  }
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kMostAtOnce));
    auto* const data = reinterpret_cast<PUCHAR>(const_cast<std::byte*>(piece.data()));
    ::BCryptHashData(state_->hash, data, static_cast<ULONG>(piece.size()), 0);
    bytes = bytes.subspan(piece.size());
  }
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> bytes{};
  ::BCryptFinishHash(state_->hash, bytes.data(), static_cast<ULONG>(bytes.size()), 0);
  std::string out;
  for (const unsigned char byte : bytes) out += text("{:02x}", byte);
  return out;
}

}  // namespace etstream
