// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/same_bytes.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <tuple>

#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"

namespace etstream {
namespace {

/// The facts that tell most sources of one size apart without reading all of them.
struct Sample {
  std::uint64_t size = 0;
  ContentHash hash;
  std::uint32_t index = 0;  // in the order given
};

auto order_of(const Sample& sample) { return std::tie(sample.size, sample.hash, sample.index); }

/// Returns the hash of some bytes at the start and at the end.
Result<ContentHash> hash_ends(const ByteSource& source) {
  constexpr std::uint64_t kEnd = 4096;
  if (source.size() <= 2 * kEnd) return hash_of(source);
  ETSTREAM_ASSIGN(ByteSource first, source.slice(0, kEnd));
  ETSTREAM_ASSIGN(ByteSource last, source.slice(source.size() - kEnd, kEnd));
  ETSTREAM_ASSIGN(const ByteSource ends, ByteSource::concatenation({std::move(first), std::move(last)}));
  return hash_of(ends);
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

/// Does the same for samples of one size and with one hash of their ends, but any number of contents.
Result<void> find_equal(const std::vector<ByteSource>& sources, Samples samples,
                        std::vector<std::uint32_t>& first) {
  if (samples.size() < 2) return {};
  ETSTREAM_ASSIGN(std::vector<Sample> others, take_equal_to_first(sources, samples, first));
  if (others.size() < 2) return {};
  std::ranges::sort(others, {}, order_of);
  std::map<ContentHash, std::vector<Sample>> contents;
  for (const Sample& sample : others) {
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(sources[sample.index]));
    contents[hash].push_back(sample);
  }
  for (auto& [hash, equal] : contents) {
    while (equal.size() > 1) {
      ETSTREAM_ASSIGN(equal, take_equal_to_first(sources, equal, first));
    }
  }
  return {};
}

using Places = std::map<SourcePlace, std::uint32_t>;

/// Bounds how many bytes of each storage are read, as sources that overlap may have any number of bytes.
class ReadingBudget {
 public:
  ReadingBudget(const Places& places, const std::vector<ByteSource>& sources) {
    std::map<SourcePlace, std::string> origins;  // with their names
    for (const auto& [place, index] : places) {
      for_each_origin(sources[index], [&](const ByteSource& origin) {
        if (!origins.contains(origin.place())) origins.emplace(origin.place(), origin.name());
      });
    }
    for (auto next = origins.begin(); next != origins.end();) {
      const auto& [first, name] = *next;
      std::uint64_t covered = 0;
      for (std::uint64_t done = 0; next != origins.end() && next->first.storage == first.storage; ++next) {
        const SourcePlace& place = next->first;
        if (place.end <= done) continue;
        covered += place.end - std::max(place.begin, done);
        done = place.end;
      }
      budgets_.try_emplace(first.storage, name, covered);
    }
  }

  /// Counts all bytes of a source at one of the places; or, before it is known to have a peer, those from
  /// which its ends are made if it has no bytes of its own.
  Result<void> spend(const ByteSource& source, bool ends_alone) {
    Result<void> out;
    for_each_origin(source, [&](const ByteSource& origin) {
      if (!out || (ends_alone && origin.place() == source.place())) return;
      const std::uint64_t size = ends_alone ? std::min(origin.size(), source.size()) : source.size();
      out = budgets_.at(origin.place().storage).spend(size);
    });
    return out;
  }

 private:
  std::map<const ByteStorage*, FileBudget> budgets_;
};

}  // namespace

Result<std::optional<std::uint64_t>> first_difference(const ByteSource& a, const ByteSource& b) {
  if (a.place() == b.place()) return std::optional<std::uint64_t>();
  constexpr std::uint64_t kMostPiece = std::uint64_t{1} << 18;
  const std::uint64_t common = std::min(a.size(), b.size());
  const auto most = static_cast<std::size_t>(std::min(common, kMostPiece));
  const auto left = std::make_unique_for_overwrite<std::byte[]>(most);
  const auto right = std::make_unique_for_overwrite<std::byte[]>(most);
  std::uint64_t piece = 256;  // as most sources that differ do so at the start
  for (std::uint64_t at = 0; at < common; piece = std::min(4 * piece, kMostPiece)) {
    const auto n = static_cast<std::size_t>(std::min(piece, common - at));
    ETSTREAM_TRY(a.read_at(at, std::span(left.get(), n)));
    ETSTREAM_TRY(b.read_at(at, std::span(right.get(), n)));
    a.drop_pages(at, n);
    b.drop_pages(at, n);
    if (std::memcmp(left.get(), right.get(), n) != 0) {  // faster than mismatch()
      const auto different = std::mismatch(left.get(), left.get() + n, right.get()).first;
      return std::optional(at + static_cast<std::uint64_t>(different - left.get()));
    }
    at += n;
  }
  return a.size() == b.size() ? std::nullopt : std::optional(common);
}

Result<std::optional<std::uint64_t>> Comparisons::first_difference(const ByteSource& a, const ByteSource& b) {
  if (a.place() == b.place()) return std::optional<std::uint64_t>();
  const std::uint64_t begin = a.place().begin;
  const std::uint64_t common = std::min(a.size(), b.size());
  const std::tuple key(a.place().storage, b.place().storage, b.place().begin - begin);
  auto& runs = known_.try_emplace(key, Aligned{a, b}).first->second.runs;
  auto run = runs.upper_bound(begin);
  if (run != runs.begin() && std::prev(run)->second.end >= begin) {
    --run;
  } else {
    run = runs.emplace_hint(run, begin, Aligned::Run{begin});
  }
  Aligned::Run& known = run->second;
  while (!known.ends_in_difference && known.end < begin + common) {
    const auto next = std::next(run);
    const std::uint64_t stop = next == runs.end() ? begin + common : std::min(begin + common, next->first);
    ETSTREAM_ASSIGN(const ByteSource one, a.slice(known.end - begin, stop - known.end));
    ETSTREAM_ASSIGN(const ByteSource other, b.slice(known.end - begin, stop - known.end));
    ETSTREAM_ASSIGN(const auto difference, etstream::first_difference(one, other));
    compared_ += difference.value_or(one.size());
    known = {known.end + difference.value_or(one.size()), difference.has_value()};
    if (next == runs.end() || known.end != next->first) continue;
    known = next->second;
    runs.erase(next);
  }
  if (known.end < begin + common) return std::optional(known.end - begin);
  return a.size() == b.size() ? std::nullopt : std::optional(common);
}

Result<bool> same_bytes(const ByteSource& a, const ByteSource& b) {
  if (a.size() != b.size()) return false;
  ETSTREAM_ASSIGN(const auto different, first_difference(a, b));
  return !different.has_value();
}

Result<bool> gives_same_bytes(const FilePlan& plan, const ByteSource& file) {
  if (plan.size != file.size()) return false;
  for (const Extent& extent : plan.extents) {
    if (extent.source.offset_in(file) == extent.offset) continue;
    ETSTREAM_ASSIGN(const ByteSource there, file.slice(extent.offset, extent.size()));
    ETSTREAM_ASSIGN(const bool same, same_bytes(extent.source, there));
    if (!same) return false;
  }
  return true;
}

Result<std::vector<std::uint32_t>> first_equal(const std::vector<ByteSource>& sources) {
  std::vector<std::uint32_t> first(sources.size());
  std::iota(first.begin(), first.end(), 0U);
  Places first_at;
  std::map<std::uint64_t, std::uint32_t> places_of_size;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (first_at.try_emplace(sources[i].place(), i).second) ++places_of_size[sources[i].size()];
  }
  ReadingBudget budget(first_at, sources);
  std::vector<Sample> samples;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (places_of_size[sources[i].size()] == 1 || first_at[sources[i].place()] != i) continue;
    ETSTREAM_TRY(budget.spend(sources[i], true));
    ETSTREAM_ASSIGN(const ContentHash hash, hash_ends(sources[i]));
    samples.push_back({sources[i].size(), hash, i});
  }
  std::ranges::sort(samples, {}, order_of);
  for (auto begin = samples.begin(); begin != samples.end();) {
    const auto end = std::find_if(begin, samples.end(), [&](const Sample& sample) {
      return sample.size != begin->size || sample.hash != begin->hash;
    });
    if (end - begin > 1) {
      for (const Sample& sample : Samples(begin, end))
        ETSTREAM_TRY(budget.spend(sources[sample.index], false));
    }
    ETSTREAM_TRY(find_equal(sources, Samples(begin, end), first));
    begin = end;
  }
  for (std::uint32_t i = 0; i < sources.size(); ++i) first[i] = first[first_at[sources[i].place()]];
  return first;
}

}  // namespace etstream
