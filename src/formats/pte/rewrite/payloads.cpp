// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/payloads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "etstream/program.h"
#include "etstream/tensor.h"

namespace etstream {
namespace {

using Sizes = std::vector<std::optional<std::uint64_t>>;

/// Returns the size of each constant's data, by the tensors that refer to it.
Result<Sizes> constant_sizes(const EditableProgram& editable, std::size_t count) {
  Sizes sizes(count);
  for (const ProgramTensor& tensor : editable.tensors) {
    if (!tensor.is_constant() || tensor.buffer >= count) continue;
    ETSTREAM_ASSIGN(const pte::Tensor table, editable.program.tensor_at(tensor.position));
    ETSTREAM_ASSIGN(const TensorLayout layout, table.layout());
    const auto bytes = byte_size(layout.scalar_type, layout.sizes);
    if (!bytes) return table.corrupt("a constant tensor", bytes.error().message);
    sizes[tensor.buffer] = std::max(sizes[tensor.buffer].value_or(0), *bytes);
  }
  return sizes;
}

/// Cuts the segment into its pieces, without the padding behind a piece whose length is known. `sizes` is
/// empty if no length is known, and then pieces follow one another. Otherwise ExecuTorch accepts offsets in
/// any order, and an offset that no tensor refers to, such as the first, may point anywhere.
Result<void> split(EditableProgram& editable, EditableProgram::Subsegments& subsegments, const Sizes& sizes) {
  const ByteSource segment =
      subsegments.segment ? editable.segments[*subsegments.segment].source : ByteSource();
  const std::vector<std::uint64_t>& offsets = subsegments.offsets;
  std::vector<ByteSource> pieces;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t end =
        std::min(i + 1 < offsets.size() ? offsets[i + 1] : segment.size(), segment.size());
    const std::optional<std::uint64_t> known = sizes.empty() ? std::nullopt : sizes[i];
    const bool fits = known ? range_fits(offsets[i], *known, segment.size()) : offsets[i] <= end;
    const std::uint64_t size = known.value_or(fits ? end - offsets[i] : 0);
    const bool may_be_unused = !sizes.empty() && !known;
    if (!fits && !may_be_unused) {
      return editable.program.view().corrupt(
          subsegments.position.value_or(0),
          text("piece {}, {} bytes, in its place in a segment of {} bytes", i, size, segment.size()),
          text("it at {}", offsets[i]));
    }
    ETSTREAM_ASSIGN(ByteSource piece, segment.slice(std::min(offsets[i], segment.size()), size));
    pieces.push_back(std::move(piece));
  }
  subsegments.pieces = std::move(pieces);
  return {};
}

constexpr std::string_view kDelegate = "delegate ";  // how the use of segments of delegates begins

/// Returns the segments, or the entries in the flatbuffer, that delegates refer to.
std::set<std::uint32_t> used_by(const std::vector<DelegateReference>& delegates, bool in_segment) {
  std::set<std::uint32_t> out;
  for (const DelegateReference& reference : delegates) {
    if (reference.in_segment == in_segment) out.insert(reference.index);
  }
  return out;
}

/// Returns the segments of `delegates` that nothing but delegates uses.
std::set<std::uint32_t> own_segments(const EditableProgram& editable,
                                     const std::vector<DelegateReference>& delegates) {
  std::set<std::uint32_t> out = used_by(delegates, true);
  std::erase_if(out, [&](std::uint32_t i) { return !editable.segments[i].label.starts_with(kDelegate); });
  return out;
}

void leave_out(EditableProgram& editable, const std::set<std::uint32_t>& segments) {
  std::erase_if(editable.order, [&](std::uint32_t i) { return segments.contains(i); });
}

/// Returns the segment of named data that has these bytes.
Result<std::optional<std::uint32_t>> segment_with(const EditableProgram& editable, const ByteSource& value) {
  for (const EditableProgram::NamedData& named : editable.named_data) {
    const ByteSource& source = editable.segments[named.segment].source;
    if (source.size() != value.size()) continue;
    ETSTREAM_ASSIGN(const bool same, same_bytes(source, value));
    if (same) return std::optional(named.segment);
  }
  return std::optional<std::uint32_t>();
}

}  // namespace

Result<void> split_constants(EditableProgram& editable) {
  if (editable.constants && editable.constants->pieces) return {};
  if (!editable.constants) editable.constants.emplace();
  EditableProgram::Subsegments& constants = *editable.constants;
  if (!constants.segment) {
    constants.segment = static_cast<std::uint32_t>(editable.segments.size());
    editable.segments.push_back({{}, "constants"});
    editable.order.insert(editable.order.begin(), *constants.segment);
  }
  if (editable.inline_constants.empty() || !constants.offsets.empty()) {
    ETSTREAM_ASSIGN(const Sizes sizes, constant_sizes(editable, constants.offsets.size()));
    return split(editable, constants, sizes);
  }
  constants.pieces.emplace();
  for (const auto& entry : editable.inline_constants) constants.pieces->push_back(entry.data);
  editable.inline_constants.clear();
  editable.has_same_inline_constants = false;
  return {};
}

Result<ByteSource> piece_of(const EditableProgram& editable, const ProgramTensor& tensor) {
  const std::vector<ByteSource>& pieces = *editable.constants->pieces;
  if (tensor.buffer < pieces.size()) return pieces[tensor.buffer];
  return editable.program.view().corrupt(tensor.position, text("a constant below {}", pieces.size()),
                                         std::to_string(tensor.buffer));
}

Result<TensorLayout> layout_of(const EditableProgram& editable, const ProgramTensor& tensor) {
  ETSTREAM_ASSIGN(const pte::Tensor table, editable.program.tensor_at(tensor.position));
  return table.layout();
}

Result<void> split_mutable_data(EditableProgram& editable) {
  for (EditableProgram::Subsegments& subsegments : editable.mutable_data) {
    ETSTREAM_TRY(split(editable, subsegments, {}));
  }
  return {};
}

void remove_pieces(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                   const std::vector<ProgramTensor>& gone, TensorTest uses) {
  std::set<std::uint32_t> unused;
  for (const ProgramTensor& tensor : gone) {
    if ((tensor.*uses)()) unused.insert(tensor.buffer);
  }
  for (const ProgramTensor& tensor : editable.tensors) {
    if ((tensor.*uses)()) unused.erase(tensor.buffer);
  }
  std::vector<std::uint32_t> numbers;
  std::vector<ByteSource> kept;
  for (std::uint32_t i = 0; i < subsegments.pieces->size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(kept.size()));
    if (!unused.contains(i)) kept.push_back((*subsegments.pieces)[i]);
  }
  for (std::size_t i = 0; i < editable.tensors.size(); ++i) {
    std::uint32_t& buffer = editable.tensors[i].buffer;
    if (!(editable.tensors[i].*uses)() || buffer >= numbers.size() || numbers[buffer] == buffer) continue;
    buffer = numbers[buffer];
    editable.changed_tensors.insert(i);
  }
  subsegments.pieces = std::move(kept);
}

Result<void> join(EditableProgram& editable, EditableProgram::Subsegments& subsegments,
                  std::uint32_t alignment) {
  std::vector<ByteSource> parts;
  std::uint64_t end = 0;
  subsegments.offsets.clear();
  for (const ByteSource& piece : *subsegments.pieces) {
    const std::uint64_t padding = padding_to(end, alignment);
    const auto begin = checked_add(end, padding);
    const auto next = begin ? checked_add(*begin, piece.size()) : std::nullopt;
    if (!next) return make_error(ErrorCode::kTooLarge, "the constants would be over 2^64 - 1 bytes");
    parts.push_back(ByteSource::zeros(padding));
    parts.push_back(piece);
    subsegments.offsets.push_back(*begin);
    end = *next;
  }
  EditableProgram::Segment& segment = editable.segments[*subsegments.segment];
  ETSTREAM_ASSIGN(segment.source, ByteSource::concatenation(std::move(parts)));
  segment.offset.reset();
  return {};
}

const ByteSource& data_of(const EditableProgram& editable, const DelegateReference& reference) {
  return reference.in_segment ? editable.segments[reference.index].source
                              : editable.inline_delegates[reference.index].data;
}

void move_delegates_inline(EditableProgram& editable) {
  if (used_by(editable.delegates, true).empty()) return;
  leave_out(editable, own_segments(editable, editable.delegates));
  std::vector<EditableProgram::InlineData> entries;
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> numbers;  // by where the data was
  for (DelegateReference& reference : editable.delegates) {
    const auto [number, added] = numbers.try_emplace({reference.in_segment, reference.index},
                                                     static_cast<std::uint32_t>(entries.size()));
    if (added && reference.in_segment) {
      entries.push_back({std::nullopt, editable.segments[reference.index].source});
    } else if (added) {
      entries.push_back(editable.inline_delegates[reference.index]);
    }
    reference.in_segment = false;
    reference.index = number->second;
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

Result<void> move_delegates_to_segments(EditableProgram& editable) {
  const auto label_of = [&](std::uint32_t i) -> std::string_view { return editable.segments[i].label; };
  auto insert_at = std::ranges::find(editable.order, kNamedDataLabel, label_of) - editable.order.begin();
  std::vector<EditableProgram::InlineData> entries;
  std::vector<ByteSource> data;
  for (const DelegateReference& reference : editable.delegates) {
    if (reference.in_segment) continue;
    const ByteSource& own = editable.inline_delegates[reference.index].data;
    if (own.size() > 0) data.push_back(own);
  }
  ETSTREAM_ASSIGN(const auto first, first_equal(data));
  std::vector<std::uint32_t> segments;  // of the data
  for (DelegateReference& reference : editable.delegates) {
    if (reference.in_segment) continue;
    const EditableProgram::InlineData& entry = editable.inline_delegates[reference.index];
    if (entry.data.size() == 0) {
      reference.index = static_cast<std::uint32_t>(entries.size());
      entries.push_back(entry);
      continue;
    }
    const std::uint32_t same = first[segments.size()];
    if (same == segments.size()) {
      segments.push_back(static_cast<std::uint32_t>(editable.segments.size()));
      editable.segments.push_back({entry.data, "delegate"});
      editable.order.insert(editable.order.begin() + insert_at++, segments.back());
    } else {
      segments.push_back(segments[same]);
    }
    reference.in_segment = true;
    reference.index = segments.back();
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
  return {};
}

void remove_delegate_data(EditableProgram& editable, const std::vector<DelegateReference>& gone) {
  const auto used_segments = used_by(editable.delegates, true);
  std::set<std::uint32_t> segments = own_segments(editable, gone);
  std::erase_if(segments, [&](std::uint32_t i) { return used_segments.contains(i); });
  leave_out(editable, segments);

  const auto used = used_by(editable.delegates, false);
  const auto used_before = used_by(gone, false);
  std::vector<EditableProgram::InlineData> entries;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < editable.inline_delegates.size(); ++i) {
    numbers.push_back(static_cast<std::uint32_t>(entries.size()));
    if (used.contains(i) || !used_before.contains(i)) entries.push_back(editable.inline_delegates[i]);
  }
  if (entries.size() == editable.inline_delegates.size()) return;
  for (DelegateReference& reference : editable.delegates) {
    if (!reference.in_segment) reference.index = numbers[reference.index];
  }
  editable.inline_delegates = std::move(entries);
  editable.has_same_inline_delegates = false;
}

void remove_named_data(EditableProgram& editable, const std::set<std::string>& keys) {
  std::set<std::uint32_t> kept;
  std::set<std::uint32_t> gone;
  for (const EditableProgram::NamedData& named : editable.named_data) {
    (keys.contains(named.key) ? gone : kept).insert(named.segment);
  }
  if (gone.empty()) return;
  std::erase_if(editable.named_data, [&](const auto& named) { return keys.contains(named.key); });
  std::erase_if(editable.order, [&](std::uint32_t i) {
    return gone.contains(i) && !kept.contains(i) && editable.segments[i].label == kNamedDataLabel;
  });
  editable.has_same_named_data = false;
}

void add_named_data(EditableProgram& editable, const std::string& key, std::uint32_t segment) {
  editable.named_data.push_back({std::nullopt, key, segment});
  editable.has_same_named_data = false;
}

void move_metadata_to_the_end(EditableProgram& editable) {
  const auto is_other = [](const EditableProgram::NamedData& named) {
    return !named.key.starts_with(kMetadataPrefix);
  };
  const auto metadata =
      std::stable_partition(editable.named_data.begin(), editable.named_data.end(), is_other);
  std::set<std::uint32_t> of_others;
  for (auto named = editable.named_data.begin(); named != metadata; ++named) of_others.insert(named->segment);
  for (auto named = metadata; named != editable.named_data.end(); ++named) {
    const std::uint32_t segment = named->segment;
    if (of_others.contains(segment) || editable.segments[segment].label != kNamedDataLabel) continue;
    std::erase(editable.order, segment);
    editable.order.push_back(segment);
  }
  editable.has_same_named_data = false;
}

Result<void> add_metadata(EditableProgram& editable, const std::map<std::string, ByteSource>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.empty()) return Error{ErrorCode::kInvalidArgument, "metadata: expected a key, found none"};
    const std::string key = std::string(kMetadataPrefix) + name;
    remove_named_data(editable, {key});
    ETSTREAM_ASSIGN(const auto segment, segment_with(editable, value));
    add_named_data(editable, key, segment ? *segment : editable.add_segment(value, kNamedDataLabel));
  }
  return {};
}

}  // namespace etstream
