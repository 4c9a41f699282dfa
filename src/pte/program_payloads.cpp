// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_payloads.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "pte/program_parts.h"

namespace etstream {

Result<ProgramPayloads> ProgramPayloads::read(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const TableReader root, TableReader::root(program.parts().view));
  ProgramPayloads out(program, root);
  ETSTREAM_ASSIGN(out.segments_, program.segments());
  return out;
}

Result<ByteSource> ProgramPayloads::segment(const TableReader& from, std::uint64_t index) const {
  if (index >= segments_.size()) {
    return from.corrupt(text("a segment below ", segments_.size()), text(index));
  }
  const SegmentInfo& segment = segments_[static_cast<std::size_t>(index)];
  return program_->file().slice(segment.offset, segment.size);
}

Result<ByteSource> ProgramPayloads::piece(const TableReader& tensor, const TableReader& pieces,
                                          std::uint32_t index, std::uint64_t size) const {
  constexpr unsigned kWidth = 8;
  ETSTREAM_ASSIGN(const auto offsets, pieces.vector("offsets"));
  const std::uint32_t count = offsets ? offsets->count : 0;
  if (index >= count) {
    return tensor.corrupt(text("Tensor.data_buffer_idx from 0 to below ", count), text(index));
  }
  ETSTREAM_ASSIGN(const auto segment_index, pieces.scalar<std::uint32_t>("segment_index"));
  ETSTREAM_ASSIGN(const ByteSource whole, segment(pieces, segment_index));
  ETSTREAM_ASSIGN(
      const std::uint64_t offset,
      program_->parts().view.read_bits(offsets->elements() + kWidth * std::uint64_t{index}, kWidth));
  if (!range_fits(offset, size, whole.size())) {
    return tensor.corrupt(text("a tensor's ", size, " bytes inside its segment's ", whole.size()),
                          text("them at ", offset));
  }
  return whole.slice(offset, size);
}

Result<ByteSource> ProgramPayloads::constant(const TableReader& tensor, std::uint32_t index,
                                             std::uint64_t size) const {
  ETSTREAM_ASSIGN(const auto pieces, root_.child("constant_segment"));
  if (pieces) {
    ETSTREAM_ASSIGN(const auto offsets, pieces->vector("offsets"));
    if (offsets && offsets->count > 0) return piece(tensor, *pieces, index, size);
  }
  ETSTREAM_ASSIGN(const TableList buffers, root_.tables("constant_buffer"));
  if (index >= buffers.size()) {
    return tensor.corrupt(
        text("Tensor.data_buffer_idx of an inline constant from 0 to below ", buffers.size()), text(index));
  }
  ETSTREAM_ASSIGN(const TableReader buffer, buffers.at(index));
  ETSTREAM_ASSIGN(auto storage, buffer.bytes("storage"));
  const ByteSource whole = std::move(storage).value_or(ByteSource());
  if (whole.size() < size) {
    return tensor.corrupt(text("a tensor's ", size, " bytes in the flatbuffer"), text(whole.size()));
  }
  return whole.slice(0, size);
}

Result<ByteSource> ProgramPayloads::mutable_data(const TableReader& tensor, std::uint64_t segments,
                                                 std::uint32_t index, std::uint64_t size) const {
  ETSTREAM_ASSIGN(const TableList listed, root_.tables("mutable_data_segments"));
  if (segments >= listed.size()) {
    return tensor.corrupt(text("an index below ", listed.size(), " in mutable_data_segments"),
                          text(segments));
  }
  ETSTREAM_ASSIGN(const TableReader pieces, listed.at(segments));
  return piece(tensor, pieces, index, size);
}

Result<ByteSource> ProgramPayloads::delegate(const TableReader& reference, bool in_segment,
                                             std::uint32_t index) const {
  if (in_segment) return segment(reference, index);
  ETSTREAM_ASSIGN(const TableList listed, root_.tables("backend_delegate_data"));
  if (index >= listed.size()) {
    return reference.corrupt(text("an index below ", listed.size(), " in backend_delegate_data"),
                             text(index));
  }
  ETSTREAM_ASSIGN(const TableReader entry, listed.at(index));
  ETSTREAM_ASSIGN(auto data, entry.bytes("data"));
  return std::move(data).value_or(ByteSource());
}

}  // namespace etstream
