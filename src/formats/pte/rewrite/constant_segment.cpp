// SPDX-License-Identifier: BSD-3-Clause
#include "formats/pte/rewrite/constant_segment.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/scalar_type.h"

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

}  // namespace etstream
