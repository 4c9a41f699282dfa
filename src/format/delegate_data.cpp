// SPDX-License-Identifier: BSD-3-Clause
#include "format/delegate_data.h"

#include <algorithm>
#include <map>

#include "base/content_hash.h"
#include "base/text.h"
#include "base/try.h"
#include "format/delegate_references.h"
#include "layout/same_bytes.h"
#include "schema/table_reader.h"

namespace etstream {
namespace {

constexpr std::string_view kDelegate = "delegate ";

/// The data in the flatbuffer, by index.
Result<std::vector<ByteSource>> read_inline_data(const TableReader& root) {
  std::vector<ByteSource> out;
  ETSTREAM_ASSIGN(const TableList entries, root.tables("backend_delegate_data"));
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    ETSTREAM_ASSIGN(const TableReader entry, entries.at(i));
    ETSTREAM_ASSIGN(auto data, entry.bytes("data"));
    out.push_back(std::move(data).value_or(ByteSource()));
  }
  return out;
}

/// Finds sources of equal bytes.
class EqualSources {
 public:
  /// The number of the first source that was given with these bytes.
  Result<std::uint32_t> number_of(const ByteSource& source) {
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(source));
    std::vector<std::uint32_t>& candidates = by_hash_[hash];
    for (const std::uint32_t candidate : candidates) {
      ETSTREAM_ASSIGN(const bool same, same_bytes(all_[candidate], source));
      if (same) return candidate;
    }
    candidates.push_back(static_cast<std::uint32_t>(all_.size()));
    all_.push_back(source);
    return candidates.back();
  }
  [[nodiscard]] const std::vector<ByteSource>& all() const { return all_; }

 private:
  static Result<ContentHash> hash_of(const ByteSource& source) {
    ContentHasher hasher;
    std::vector<std::byte> buffer(std::size_t{1} << 18);
    for (std::uint64_t at = 0; at < source.size();) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), source.size() - at));
      ETSTREAM_TRY(source.read_at(at, std::span(buffer).first(n)));
      hasher.update(std::span(buffer).first(n));
      at += n;
    }
    return hasher.hash();
  }

  std::vector<ByteSource> all_;
  std::map<ContentHash, std::vector<std::uint32_t>> by_hash_;
};

/// What a reference refers to is there.
Result<void> check(const FlatbufferView& view, const DelegateReference& reference, std::size_t count) {
  if (reference.index < count) return {};
  return view.corrupt(reference.position,
                      text("an index below ", count, " of a delegate's data ",
                           reference.in_segment ? "in segments" : "in the flatbuffer"),
                      text(reference.index));
}

}  // namespace

Result<DelegateMove> move_delegates_inline(const FlatbufferView& view,
                                           const std::vector<SegmentInfo>& segments, const ByteSource& file) {
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(root));
  ETSTREAM_ASSIGN(const auto before, read_inline_data(root));
  DelegateMove move;
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> entries;  // by where the data was
  for (const DelegateReference& reference : references) {
    ETSTREAM_TRY(check(view, reference, reference.in_segment ? segments.size() : before.size()));
    const auto number = static_cast<std::uint32_t>(move.delegates.inline_data.size());
    const auto [entry, added] = entries.try_emplace({reference.in_segment, reference.index}, number);
    if (added && reference.in_segment) {
      const SegmentInfo& segment = segments[reference.index];
      ETSTREAM_ASSIGN(ByteSource data, file.slice(segment.offset, segment.size));
      move.delegates.inline_data.push_back(std::move(data));
      if (segment.use.starts_with(kDelegate)) move.removed.insert(reference.index);
    } else if (added) {
      move.delegates.inline_data.push_back(before[reference.index]);
    }
    move.delegates.references[reference.position] = {false, entry->second};
  }
  return move;
}

Result<DelegateMove> move_delegates_to_segments(const FlatbufferView& view,
                                                const std::vector<SegmentInfo>& segments) {
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(view));
  ETSTREAM_ASSIGN(const auto references, read_delegate_references(root));
  ETSTREAM_ASSIGN(const auto before, read_inline_data(root));
  DelegateMove move;
  const auto named = std::find_if(segments.begin(), segments.end(),
                                  [](const SegmentInfo& segment) { return segment.use == "named data"; });
  move.insert_at = static_cast<std::size_t>(named - segments.begin());
  EqualSources data;
  for (const DelegateReference& reference : references) {
    ETSTREAM_TRY(check(view, reference, reference.in_segment ? segments.size() : before.size()));
    ProgramData::Reference& moved = move.delegates.references[reference.position];
    if (reference.in_segment) {
      moved = {true, reference.index};
    } else if (before[reference.index].size() == 0) {
      moved = {false, static_cast<std::uint32_t>(move.delegates.inline_data.size())};
      move.delegates.inline_data.emplace_back();
    } else {
      ETSTREAM_ASSIGN(const std::uint32_t number, data.number_of(before[reference.index]));
      moved = {true, number, true};
    }
  }
  move.new_segments = data.all();
  return move;
}

}  // namespace etstream
