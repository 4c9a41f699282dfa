// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/arrangements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

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

/// The number of the highest bit of an element, which is the sign of a float, and that bit alone.
template <class Element>
constexpr int kTop = std::numeric_limits<Element>::digits - 1;
template <class Element>
constexpr auto kSign = static_cast<Element>(Element{1} << kTop<Element>);

/// Returns the place of a float in the order of all floats, and of other elements the element.
template <class Element>
Element place_of(Element element) noexcept {
  if constexpr (sizeof(Element) == 1) return element;
  const auto all_if_negative = static_cast<Element>(0U - static_cast<unsigned>(element >> kTop<Element>));
  return static_cast<Element>(element ^ (all_if_negative | kSign<Element>));
}

template <class Element>
Element element_at(Element place) noexcept {
  if constexpr (sizeof(Element) == 1) return place;
  const auto all_if_positive = static_cast<Element>(0U - static_cast<unsigned>(place >> kTop<Element>));
  return static_cast<Element>(place ^ (static_cast<Element>(~all_if_positive) | kSign<Element>));
}

template <class Element>
Element load(const std::byte* bytes) noexcept {
  Element out = 0;
  std::memcpy(&out, bytes, sizeof(out));
  return out;
}

template <class Element>
void subtract_elements(const std::byte* now, const std::byte* base, std::size_t count,
                       std::byte* out) noexcept {
  for (std::size_t at = 0; at < count * sizeof(Element); at += sizeof(Element)) {
    const auto difference =
        static_cast<Element>(place_of(load<Element>(now + at)) - place_of(load<Element>(base + at)));
    const auto all_if_negative =
        static_cast<Element>(0U - static_cast<unsigned>(difference >> kTop<Element>));
    const auto coded = static_cast<Element>(static_cast<Element>(difference << 1) ^ all_if_negative);
    std::memcpy(out + at, &coded, sizeof(coded));
  }
}

template <class Element>
void add_elements(const std::byte* differences, std::size_t count, std::byte* bytes) noexcept {
  for (std::size_t at = 0; at < count * sizeof(Element); at += sizeof(Element)) {
    const auto coded = load<Element>(differences + at);
    const auto all_if_negative = static_cast<Element>(0U - static_cast<unsigned>(coded & 1));
    const auto difference = static_cast<Element>(static_cast<Element>(coded >> 1) ^ all_if_negative);
    const Element now = element_at(static_cast<Element>(place_of(load<Element>(bytes + at)) + difference));
    std::memcpy(bytes + at, &now, sizeof(now));
  }
}

/// Appends runs, and joins those that continue the last one.
class Runs {
 public:
  explicit Runs(std::span<Run> out) : out_(out) {}

  void add(const Run& run) noexcept {
    if (run.size == 0) return;
    if (count_ > 0) {
      Run& last = out_[count_ - 1];
      if (last.method == run.method &&
          (run.method == kNew || last.base_offset + last.size == run.base_offset)) {
        last.size += run.size;
        return;
      }
    }
    out_[count_++] = run;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::span<Run> out_;
  std::size_t count_ = 0;
};

/// Sets bit i of byte j of `mask` if byte 8 * j + i is not zero, and puts these bytes in `values`. Returns
/// how many they are.
std::size_t take_values(std::span<const std::byte> bytes, std::span<std::byte> mask,
                        std::byte* values) noexcept {
  std::size_t count = 0;
  std::fill(mask.begin(), mask.end(), std::byte{0});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::byte value = bytes[i];
    if (value == std::byte{0}) continue;
    mask[i / 8] |= std::byte{1} << (i % 8);
    values[count++] = value;
  }
  return count;
}

/// Puts values where `mask` has bits, and zeros elsewhere. Returns how many; nothing if there are fewer.
std::optional<std::size_t> place_values(std::span<const std::byte> mask, std::span<const std::byte> values,
                                        std::span<std::byte> out) noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    auto bits = std::to_integer<std::uint32_t>(mask[i]);
    const auto eight = out.subspan(8 * i, std::min<std::size_t>(8, out.size() - 8 * i));
    std::fill(eight.begin(), eight.end(), std::byte{0});
    for (; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(bits));
      if (place >= eight.size() || at == values.size()) return std::nullopt;
      eight[place] = values[at++];
    }
  }
  return at;
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

void subtract(std::uint32_t element_size, std::span<const std::byte> now, std::span<const std::byte> base,
              std::byte* out) noexcept {
  const std::size_t whole = now.size() - now.size() % element_size;
  if (element_size == 2) {
    subtract_elements<std::uint16_t>(now.data(), base.data(), whole / 2, out);
  } else if (element_size == 4) {
    subtract_elements<std::uint32_t>(now.data(), base.data(), whole / 4, out);
  } else {
    subtract_elements<std::uint8_t>(now.data(), base.data(), whole, out);
  }
  subtract_elements<std::uint8_t>(now.data() + whole, base.data() + whole, now.size() - whole, out + whole);
}

void add(std::uint32_t element_size, std::span<const std::byte> differences,
         std::span<std::byte> bytes) noexcept {
  const std::size_t whole = bytes.size() - bytes.size() % element_size;
  if (element_size == 2) {
    add_elements<std::uint16_t>(differences.data(), whole / 2, bytes.data());
  } else if (element_size == 4) {
    add_elements<std::uint32_t>(differences.data(), whole / 4, bytes.data());
  } else {
    add_elements<std::uint8_t>(differences.data(), whole, bytes.data());
  }
  add_elements<std::uint8_t>(differences.data() + whole, bytes.size() - whole, bytes.data() + whole);
}

std::size_t find_same(std::span<const std::byte> piece, std::span<const std::byte> base,
                      std::span<const Run> runs, std::span<Run> out) noexcept {
  // Runs are cut at multiples of a block, and so between elements. A run costs 16 bytes: as few as the same
  // bytes would cost in their place in a run of a few blocks.
  constexpr std::uint32_t kBlock = 256;
  constexpr std::uint32_t kLeastSame = 4;  // blocks
  Runs found(out);
  std::size_t at = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    std::uint32_t done = 0;
    const auto take = [&](std::uint32_t method, std::uint32_t end) {
      found.add({end - done, method, run.base_offset + done});
      done = end;
    };
    std::uint32_t same = 0;  // where the same blocks before the current one begin
    const auto end_of_same = [&](std::uint32_t end) {
      const bool is_worth_it = end - same >= kLeastSame * kBlock || (end == run.size && same == 0);
      // There is room for what is left of this run, and for those after it.
      if (!is_worth_it || found.count() + 3 + runs.size() - i > kMostRuns) return;
      take(1, same);
      take(kSame, end);
    };
    if (run.method != kNew) {
      for (std::uint32_t block = 0; block < run.size; block += kBlock) {
        const std::uint32_t size = std::min(kBlock, run.size - block);
        if (std::memcmp(piece.data() + at + block, base.data() + at + block, size) == 0) continue;
        if (same < block) end_of_same(block);
        same = block + size;
      }
      if (same < run.size) end_of_same(run.size);
    }
    found.add({run.size - done, run.method, run.method == kNew ? 0 : run.base_offset + done});
    at += run.size;
  }
  return found.count();
}

std::uint32_t content_size(std::span<const Run> runs) noexcept {
  std::uint32_t out = 0;
  for (const Run& run : runs) out += run.method == kSame ? 0 : run.size;
  return out;
}

SparseSizes split_sparse(std::span<const std::byte> plane, std::span<std::byte> masks,
                         std::byte* values) noexcept {
  const std::size_t size = mask_size(plane.size());
  const auto upper = masks.first(mask_size(size));
  const auto mask = masks.subspan(upper.size(), size);
  const std::size_t count = take_values(plane, mask, values);
  return {upper.size(), take_values(mask, upper, mask.data()), count};
}

std::optional<std::size_t> merge_sparse(std::span<const std::byte> coded, std::span<std::byte> mask,
                                        std::span<std::byte> plane) noexcept {
  mask = mask.first(mask_size(plane.size()));
  const std::size_t upper = mask_size(mask.size());
  if (coded.size() < upper) return std::nullopt;
  const auto of_mask = place_values(coded.first(upper), coded.subspan(upper), mask);
  if (!of_mask) return std::nullopt;
  const auto of_plane = place_values(mask, coded.subspan(upper + *of_mask), plane);
  if (!of_plane) return std::nullopt;
  return upper + *of_mask + *of_plane;
}

}  // namespace etstream::packed
