// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/planes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace etstream::packed {
namespace {

/// The parts of a piece: the elements, the bytes before them and the bytes after them.
struct Parts {
  std::size_t elements;
  std::size_t before;
  std::size_t after;

  Parts(const Arrangement& arrangement, std::size_t size)
      : elements(size < arrangement.first_element
                     ? 0
                     : (size - arrangement.first_element) / arrangement.element_size),
        before(std::min<std::size_t>(size, arrangement.first_element)),
        after(size - before - elements * arrangement.element_size) {}
};

template <class Element>
void split_elements(const std::byte* elements, std::size_t count, int rotation, std::byte* out) noexcept {
  constexpr std::size_t kPlanes = sizeof(Element);
  for (std::size_t plane = 0; plane < kPlanes; plane += 2) {
    std::byte* const high = out + plane * count;
    std::byte* const low = high + count;
    const auto shift = static_cast<int>(8 * (kPlanes - 2 - plane));
    for (std::size_t i = 0; i < count; ++i) {
      Element element = 0;
      std::memcpy(&element, elements + i * sizeof(Element), sizeof(Element));
      element = static_cast<Element>(std::rotl(element, rotation) >> shift);
      low[i] = static_cast<std::byte>(element);
      high[i] = static_cast<std::byte>(element >> 8);
    }
  }
}

template <class Element>
void merge_elements(const std::byte* planes, std::size_t count, int rotation, std::byte* out) noexcept {
  constexpr std::size_t kPlanes = sizeof(Element);
  std::array<const std::byte*, kPlanes> plane{};
  for (std::size_t i = 0; i < kPlanes; ++i) plane[i] = planes + i * count;
  for (std::size_t i = 0; i < count; ++i) {
    Element element = 0;
    for (std::size_t p = 0; p < kPlanes; ++p) {
      element = static_cast<Element>(element << 8 | std::to_integer<Element>(plane[p][i]));
    }
    element = std::rotr(element, rotation);
    std::memcpy(out + i * sizeof(Element), &element, sizeof(Element));
  }
}

}  // namespace

void split(const Arrangement& arrangement, std::span<const std::byte> piece,
           std::span<std::byte> out) noexcept {
  const Parts parts(arrangement, piece.size());
  const std::byte* const elements = piece.data() + parts.before;
  const auto rotation = static_cast<int>(arrangement.rotation);
  if (arrangement.element_size == 2) {
    split_elements<std::uint16_t>(elements, parts.elements, rotation, out.data());
  } else {
    split_elements<std::uint32_t>(elements, parts.elements, rotation, out.data());
  }
  std::byte* const rest = out.data() + parts.elements * arrangement.element_size;
  std::copy_n(piece.data(), parts.before, rest);
  std::copy_n(piece.data() + piece.size() - parts.after, parts.after, rest + parts.before);
}

void merge(const Arrangement& arrangement, std::span<const std::byte> planes,
           std::span<std::byte> out) noexcept {
  const Parts parts(arrangement, planes.size());
  std::byte* const elements = out.data() + parts.before;
  const auto rotation = static_cast<int>(arrangement.rotation);
  if (arrangement.element_size == 2) {
    merge_elements<std::uint16_t>(planes.data(), parts.elements, rotation, elements);
  } else {
    merge_elements<std::uint32_t>(planes.data(), parts.elements, rotation, elements);
  }
  const std::byte* const rest = planes.data() + parts.elements * arrangement.element_size;
  std::copy_n(rest, parts.before, out.data());
  std::copy_n(rest + parts.before, parts.after, out.data() + out.size() - parts.after);
}

}  // namespace etstream::packed
