// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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

}  // namespace etstream
