// SPDX-License-Identifier: BSD-3-Clause
#include "layout/deduplicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <tuple>

#include "base/content_hash.h"
#include "base/try.h"
#include "io/read_pieces.h"
#include "layout/same_bytes.h"

namespace etstream {
namespace {

/// What tells most sources of one size apart without reading all of them.
struct Sample {
  std::uint64_t size = 0;
  ContentHash hash;
  std::uint32_t index = 0;  // in the order given
};

bool before(const Sample& a, const Sample& b) {
  return std::tie(a.size, a.hash, a.index) < std::tie(b.size, b.hash, b.index);
}

/// The hash of some bytes at the start and at the end.
Result<ContentHash> hash_ends(const ByteSource& source) {
  constexpr std::uint64_t kEnd = 4096;
  std::array<std::byte, 2 * kEnd> bytes{};
  const auto first = static_cast<std::size_t>(std::min(kEnd, source.size()));
  const auto last = static_cast<std::size_t>(std::min(kEnd, source.size() - first));
  ETSTREAM_TRY(source.read_at(0, std::span(bytes).first(first)));
  ETSTREAM_TRY(source.read_at(source.size() - last, std::span(bytes).subspan(first, last)));
  source.drop_pages(0, first);
  source.drop_pages(source.size() - last, last);
  ContentHasher hasher;
  hasher.update(std::span(bytes).first(first + last));
  return hasher.hash();
}

std::vector<std::uint64_t> sizes_of_several(const std::vector<ByteSource>& sources) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(sources.size());
  for (const ByteSource& source : sources) sizes.push_back(source.size());
  std::sort(sizes.begin(), sizes.end());
  std::vector<std::uint64_t> out;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] == sizes[i - 1] && (out.empty() || out.back() != sizes[i])) out.push_back(sizes[i]);
  }
  return out;
}

using Samples = std::span<const Sample>;

/// Sets for each of `samples` that has the bytes of the first the first's index, and returns the others. Each
/// is read once, as far as it is equal.
Result<std::vector<Sample>> take_equal_to_first(const std::vector<ByteSource>& sources, Samples samples,
                                                std::vector<std::uint32_t>& first) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 18;
  const ByteSource& one = sources[samples.front().index];
  std::vector<Sample> equal(samples.begin() + 1, samples.end());
  std::vector<Sample> others;
  std::vector<std::byte> expected(std::min(kPiece, one.size()));
  std::vector<std::byte> found(expected.size());
  for (std::uint64_t at = 0; at < one.size() && !equal.empty(); at += expected.size()) {
    expected.resize(std::min<std::uint64_t>(expected.size(), one.size() - at));
    found.resize(expected.size());
    ETSTREAM_TRY(one.read_at(at, expected));
    one.drop_pages(at, expected.size());
    std::vector<Sample> still;
    for (const Sample& sample : equal) {
      ETSTREAM_TRY(sources[sample.index].read_at(at, found));
      sources[sample.index].drop_pages(at, found.size());
      const bool same = std::memcmp(found.data(), expected.data(), found.size()) == 0;
      (same ? still : others).push_back(sample);
    }
    equal = std::move(still);
  }
  for (const Sample& sample : equal) first[sample.index] = samples.front().index;
  return others;
}

/// The same for samples of one size and one hash of their ends, of whatever number of contents.
Result<void> find_equal(const std::vector<ByteSource>& sources, Samples samples,
                        std::vector<std::uint32_t>& first) {
  if (samples.size() < 2) return {};
  ETSTREAM_ASSIGN(std::vector<Sample> others, take_equal_to_first(sources, samples, first));
  if (others.size() < 2) return {};
  std::sort(others.begin(), others.end(), before);
  Deduplicator group;
  std::vector<std::uint32_t> firsts;  // by number in the group
  for (const Sample& sample : others) {
    ETSTREAM_ASSIGN(const auto number, group.add(sources[sample.index]));
    if (number.second) firsts.push_back(sample.index);
    first[sample.index] = firsts[number.first];
  }
  return {};
}

}  // namespace

Result<std::pair<std::uint32_t, bool>> Deduplicator::add(const ByteSource& source) {
  ETSTREAM_ASSIGN(const ContentHash hash, hash_of(source));
  std::vector<std::uint32_t>& candidates = by_hash_[hash];
  for (const std::uint32_t candidate : candidates) {
    ETSTREAM_ASSIGN(const bool same, same_bytes(all_[candidate], source));
    if (same) return std::pair(candidate, false);
  }
  candidates.push_back(static_cast<std::uint32_t>(all_.size()));
  all_.push_back(source);
  return std::pair(candidates.back(), true);
}

Result<std::vector<std::uint32_t>> first_equal(const std::vector<ByteSource>& sources) {
  std::vector<std::uint32_t> first(sources.size());
  std::iota(first.begin(), first.end(), 0U);
  const auto several = sizes_of_several(sources);
  std::vector<Sample> samples;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (!std::binary_search(several.begin(), several.end(), sources[i].size())) continue;
    ETSTREAM_ASSIGN(const ContentHash hash, hash_ends(sources[i]));
    samples.push_back({sources[i].size(), hash, i});
  }
  std::sort(samples.begin(), samples.end(), before);
  for (auto begin = samples.begin(); begin != samples.end();) {
    const auto end = std::find_if(begin, samples.end(), [&](const Sample& sample) {
      return sample.size != begin->size || sample.hash != begin->hash;
    });
    ETSTREAM_TRY(find_equal(sources, Samples(begin, end), first));
    begin = end;
  }
  return first;
}

}  // namespace etstream
