// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/coded_size.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/base/try.h"

namespace etstream {
namespace {

constexpr std::size_t kMostContents = 1024;
constexpr std::uint64_t kSample = std::uint64_t{64} << 10;
constexpr std::uint64_t kPlaces = 16;
constexpr std::uint64_t kSamplePiece = kSample / kPlaces;

/// Returns the bits that a byte takes if it is coded by its frequency among those at `at`, `at + step`...
double bits_of_plane(std::span<const std::byte> bytes, std::size_t at, std::size_t step) {
  std::array<std::uint32_t, 256> counts{};
  double all = 0;
  for (; at < bytes.size(); at += step, ++all) ++counts[std::to_integer<std::size_t>(bytes[at])];
  double bits = 0;
  double kinds = 0;
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    bits -= count / all * std::log2(count / all);
    ++kinds;
  }
  // A sample shows less variety than the whole distribution: by this much on average (Miller and Madow).
  return std::min(bits + (kinds - 1) / (2 * all * std::log(2.0)), 8.0);
}

/// Returns the share of its size to which a sample can be reduced, as elements of so many bytes.
double share_of(std::span<const std::byte> sample, std::size_t element) {
  double bits = 0;
  for (std::size_t at = 0; at < element; ++at) bits += bits_of_plane(sample, at, element);
  return bits / (8.0 * static_cast<double>(element));
}

double least_share(std::span<const std::byte> sample, std::uint32_t element_size) {
  if (element_size != 0 && element_size <= 16) return share_of(sample, element_size);
  return std::min({share_of(sample, 1), share_of(sample, 2), share_of(sample, 4)});
}

/// Returns the contents to sample, the largest first.
std::vector<std::uint32_t> largest_leaves(const std::vector<FileContent>& contents) {
  std::vector<bool> is_parent(contents.size());
  for (std::size_t i = 1; i < contents.size(); ++i) is_parent[contents[i].parent] = true;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < contents.size(); ++i) {
    if (!is_parent[i] && contents[i].size >= kSample) out.push_back(i);
  }
  std::ranges::stable_sort(out, std::greater{}, [&](std::uint32_t i) { return contents[i].size; });
  out.resize(std::min(out.size(), kMostContents));
  return out;
}

}  // namespace

Result<CodedSizes> estimate_coded_sizes(const ByteSource& file, const std::vector<FileContent>& contents) {
  return without_exceptions([&]() -> Result<CodedSizes> {
    CodedSizes out;
    const auto sample = std::make_unique_for_overwrite<std::byte[]>(kSample);
    std::vector<std::uint32_t> leaves = largest_leaves(contents);
    std::ranges::sort(leaves);
    for (const std::uint32_t leaf : leaves) {
      const FileContent& content = contents[leaf];
      // Pieces begin where elements do. Elements have 16 bytes at most.
      const std::uint64_t step = (content.size - kSamplePiece) / (kPlaces - 1) / 16 * 16;
      for (std::uint64_t i = 0; i < kPlaces; ++i) {
        const std::span piece(sample.get() + i * kSamplePiece, kSamplePiece);
        ETSTREAM_TRY(file.read_at(content.offset + i * step, piece));
      }
      const double share = least_share({sample.get(), kSample}, content.element_size);
      const auto size = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(content.size)));
      out.contents.push_back({leaf, std::min(size, content.size)});
      out.looked_at += content.size;
      out.saved += content.size - out.contents.back().size;
      out.bytes_read += kSample;
    }
    return out;
  });
}

}  // namespace etstream
