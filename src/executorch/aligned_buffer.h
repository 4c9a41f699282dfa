// SPDX-License-Identifier: BSD-3-Clause
//
// Memory for kernels and delegates, which ask for more alignment than std::vector gives.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>

namespace etstream {

/// `size` bytes at a multiple of `alignment`, a power of two. Not initialized.
class AlignedBuffer {
 public:
  static constexpr std::size_t kLeastAlignment = 64;  // of a cache line, and of the widest vector registers

  /// Returns a buffer, or nothing if there is no memory. An empty buffer has a null pointer.
  [[nodiscard]] static std::optional<AlignedBuffer> allocate(
      std::size_t size, std::size_t alignment = kLeastAlignment) noexcept {
    if (size == 0) return AlignedBuffer(nullptr, 0);
    if (size > std::numeric_limits<std::size_t>::max() - alignment) return std::nullopt;
    // aligned_alloc accepts only multiples of the alignment.
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    if (!data) return std::nullopt;
    return AlignedBuffer(data, size);
  }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// Leaves the memory to the caller, who frees it with std::free.
  [[nodiscard]] std::byte* release() noexcept { return data_.release(); }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { std::free(data); }
  };
  AlignedBuffer(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

}  // namespace etstream
