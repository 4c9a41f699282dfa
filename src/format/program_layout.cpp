// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_layout.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "format/constant_segment.h"
#include "format/delegate_data.h"
#include "format/program_parts.h"
#include "format/program_values.h"
#include "layout/append.h"
#include "layout/same_bytes.h"
#include "schema/schema_packer.h"
#include "schema/table_reader.h"

namespace etstream {
namespace {

constexpr std::uint32_t kUsualInlineAlignment = 16;  // of inline data, by the schema
constexpr std::uint32_t kMostInlineAlignment = 65536;
constexpr std::uint32_t kUsualSegmentAlignment = 128;
constexpr std::uint32_t kMostSegmentAlignment = std::uint32_t{1} << 30;

/// What the bytes of a program's flatbuffer depend on besides its values.
struct FlatbufferAlignments {
  std::uint32_t delegates = kUsualInlineAlignment;
  /// What the extended header is padded to: the largest alignment in the schema, which is that of delegates
  /// or the one that tensors were exported with. At least the header's own size.
  std::uint32_t header = ExtendedHeader::kSize;
};

/// A program's flatbuffer, with room for an extended header where it has one.
Result<Layout> pack_flatbuffer(const FlatbufferView& view, const ProgramData& data,
                               const FlatbufferAlignments& alignments, bool has_header) {
  Schema schema = view.schema();
  ETSTREAM_TRY(schema.set_alignment("BackendDelegateInlineData", "data", alignments.delegates));
  ETSTREAM_ASSIGN(auto bound, ProgramValues::bind(schema));
  ETSTREAM_ASSIGN(const TableView root, view.root());
  ProgramValues values(std::move(bound), view, root, data);
  return pack(schema, values, {.header_size = has_header ? alignments.header : 0});
}

void put_header(Layout& flatbuffer, const ExtendedHeader& header, std::uint32_t size) {
  std::vector<std::byte> bytes(size);
  write_extended_header(header, bytes);
  flatbuffer.extents[1].source = ByteSource::owned(std::move(bytes));
}

class ProgramPlanner {
 public:
  ProgramPlanner(const ProgramFile& program, const ProgramFile::Parts& parts,
                 const ProgramLayoutOptions& options)
      : program_(program), parts_(parts), options_(options) {}

  Result<Layout> run() {
    ETSTREAM_ASSIGN(const auto found, program_.segments());
    ETSTREAM_TRY(read_segments(found));
    ETSTREAM_ASSIGN(alignments_, observed_alignments());
    ETSTREAM_TRY(set_alignments());
    if (options_.constant_tensor_alignment) ETSTREAM_TRY(align_constant_tensors(found));
    if (options_.delegates) ETSTREAM_TRY(move_delegates(found));
    segment_alignment_ = options_.segment_alignment.value_or(observed_segment_alignment(found));
    if (options_.segment_alignment || options_.constant_tensor_alignment || options_.delegates ||
        !are_in_order()) {
      ETSTREAM_TRY(place_segments());
    }
    return assemble();
  }

 private:
  /// As they are in the program.
  Result<void> read_segments(const std::vector<SegmentInfo>& found) {
    for (const SegmentInfo& segment : found) {
      ETSTREAM_ASSIGN(ByteSource source, parts_.file.slice(segment.offset, segment.size));
      data_.segment_numbers.push_back(static_cast<std::uint32_t>(sources_.size()));
      data_.segments.push_back({segment.offset - parts_.header.segment_base_offset, segment.size});
      sources_.push_back({std::move(source), segment.use.empty() ? "segment" : segment.use});
    }
    return {};
  }

  /// The alignments with which packing gives the program's flatbuffer again; the usual ones where none do, as
  /// another writer made it.
  Result<FlatbufferAlignments> observed_alignments() const {
    for (std::uint32_t delegates : powers_from(kUsualInlineAlignment)) {
      for (std::uint32_t header = std::max(delegates, ExtendedHeader::kSize); header <= kMostInlineAlignment;
           header *= 2) {
        const FlatbufferAlignments tried{delegates, header};
        const bool has_header = parts_.header.length != 0;
        ETSTREAM_ASSIGN(Layout flatbuffer, pack_flatbuffer(parts_.view, data_, tried, has_header));
        if (has_header) put_header(flatbuffer, parts_.header, header);
        ETSTREAM_ASSIGN(const bool same, gives_same_bytes(flatbuffer, parts_.view.file()));
        if (same) return tried;
        if (!has_header) break;
      }
    }
    return FlatbufferAlignments();
  }

  /// Those that are asked for, in place of those observed.
  Result<void> set_alignments() {
    if (options_.constant_tensor_alignment || options_.delegate_alignment) {
      ETSTREAM_ASSIGN(const bool by_tensors, header_is_padded_for_tensors());
      const std::uint32_t tensors = by_tensors ? alignments_.header : ExtendedHeader::kSize;
      alignments_.delegates = options_.delegate_alignment.value_or(alignments_.delegates);
      alignments_.header = std::max({ExtendedHeader::kSize, alignments_.delegates,
                                     options_.constant_tensor_alignment.value_or(tensors)});
    }
    return {};
  }

  Result<void> align_constant_tensors(const std::vector<SegmentInfo>& found) {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_.view));
    ETSTREAM_ASSIGN(auto constants,
                    align_constants(root, parts_.file, found, *options_.constant_tensor_alignment));
    if (!constants) return {};
    sources_[constants->segment].source = std::move(constants->source);
    data_.constants = ProgramData::Constants{constants->position, std::move(constants->offsets)};
    return {};
  }

  /// Whether the header is padded as it is because tensors are aligned so, rather than delegates. Where there
  /// is no telling, because there is one tensor or none, delegates are taken to be the reason if they are
  /// aligned so.
  Result<bool> header_is_padded_for_tensors() const {
    ETSTREAM_ASSIGN(const TableReader root, TableReader::root(parts_.view));
    ETSTREAM_ASSIGN(const auto constants, root.child("constant_segment"));
    if (!constants) return alignments_.header != alignments_.delegates;
    ETSTREAM_ASSIGN(const auto offsets, constants->bytes("offsets"));
    std::uint64_t all = 0;  // the bits of all offsets
    std::array<std::uint64_t, 512> some{};
    const std::uint64_t size = offsets ? offsets->size() : 0;
    for (std::uint64_t at = 0; at < size;) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(sizeof(some), size - at));
      ETSTREAM_TRY(offsets->read_at(at, std::as_writable_bytes(std::span(some)).first(n)));
      for (std::size_t i = 0; i < n / sizeof(some[0]); ++i) all |= some[i];
      at += n;
    }
    if (all == 0) return alignments_.header != alignments_.delegates;
    return all % alignments_.header == 0;
  }

  /// The powers of two that an inline alignment can be, `first` first.
  static std::vector<std::uint32_t> powers_from(std::uint32_t first) {
    std::vector<std::uint32_t> out = {first};
    for (std::uint32_t power = 1; power <= kMostInlineAlignment; power *= 2) {
      if (power != first) out.push_back(power);
    }
    return out;
  }

  /// The alignment with which segments come to lie where they do: the usual one if that does it, otherwise
  /// the largest one. The padding before the first segment is shorter than the alignment.
  std::uint32_t observed_segment_alignment(const std::vector<SegmentInfo>& found) const {
    const std::uint64_t padding = parts_.header.segment_base_offset - parts_.header.program_size;
    std::uint64_t places = parts_.header.segment_base_offset;
    for (const SegmentInfo& segment : found) places |= segment.size > 0 ? segment.offset : 0;
    const auto does_it = [&](std::uint32_t alignment) {
      return padding < alignment && places % alignment == 0;
    };
    if (places == 0 || does_it(kUsualSegmentAlignment)) return kUsualSegmentAlignment;
    for (std::uint32_t alignment = kMostSegmentAlignment; alignment > 0; alignment /= 2) {
      if (does_it(alignment)) return alignment;
    }
    return kUsualSegmentAlignment;
  }

  bool are_in_order() const {
    std::uint64_t end = 0;
    for (const ProgramData::Segment& segment : data_.segments) {
      if (segment.offset < end) return false;
      end = segment.offset + segment.size;
    }
    return true;
  }

  Result<void> move_delegates(const std::vector<SegmentInfo>& found) {
    ETSTREAM_ASSIGN(DelegateMove move, *options_.delegates == DelegateData::kInline
                                           ? move_delegates_inline(parts_.view, found, parts_.file)
                                           : move_delegates_to_segments(parts_.view, found));
    std::vector<Segment> moved;
    for (std::size_t i = 0; i <= sources_.size(); ++i) {
      if (i == move.insert_at) {
        for (ByteSource& source : move.new_segments) moved.push_back({std::move(source), "delegate"});
      }
      if (i == sources_.size()) break;
      data_.segment_numbers[i] = static_cast<std::uint32_t>(moved.size());
      if (!move.removed.contains(static_cast<std::uint32_t>(i))) moved.push_back(std::move(sources_[i]));
    }
    for (auto& [position, reference] : move.delegates.references) {
      if (!reference.in_segment) continue;
      reference.index = reference.is_new ? static_cast<std::uint32_t>(move.insert_at) + reference.index
                                         : data_.segment_numbers[reference.index];
    }
    sources_ = std::move(moved);
    data_.delegates = std::move(move.delegates);
    return {};
  }

  /// One after another, at multiples of the alignment.
  Result<void> place_segments() {
    data_.segments.clear();
    std::uint64_t end = 0;
    for (const Segment& segment : sources_) {
      const auto offset = checked_add(end, padding_to(end, segment_alignment_));
      const auto next = offset ? checked_add(*offset, segment.source.size()) : std::nullopt;
      if (!next) return make_error(ErrorCode::kTooLarge, "the segments would be over 2^64 - 1 bytes");
      data_.segments.push_back({*offset, segment.source.size()});
      end = *next;
    }
    return {};
  }

  Result<Layout> assemble() {
    const bool has_header = std::any_of(sources_.begin(), sources_.end(),
                                        [](const Segment& segment) { return segment.source.size() > 0; });
    auto packed = pack_flatbuffer(parts_.view, data_, alignments_, has_header);
    if (!packed && packed.error().code == ErrorCode::kTooLarge) {
      return make_error(ErrorCode::kTooLarge, packed.error().message,
                        "; have the data of delegates in segments, which may be of any size "
                        "(--delegates segments)");
    }
    if (!packed || !has_header) return packed;
    Layout layout = std::move(packed).value();
    ExtendedHeader header;
    header.length = ExtendedHeader::kSize;
    header.program_size = layout.size;
    ETSTREAM_TRY(pad(layout, segment_alignment_));
    header.segment_base_offset = layout.size;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::uint64_t at = header.segment_base_offset + data_.segments[i].offset;
      ETSTREAM_TRY(append(layout, 1, "padding", ByteSource::zeros(at - layout.size)));
      ETSTREAM_TRY(append(layout, segment_alignment_, sources_[i].label, sources_[i].source));
    }
    header.segment_data_size = layout.size - header.segment_base_offset;
    put_header(layout, header, alignments_.header);
    layout.payload_size = layout.size - layout.metadata_size;
    return layout;
  }

  struct Segment {
    ByteSource source;
    std::string label;
  };

  const ProgramFile& program_;
  const ProgramFile::Parts& parts_;
  const ProgramLayoutOptions& options_;
  ProgramData data_;
  std::vector<Segment> sources_;  // of data_.segments
  FlatbufferAlignments alignments_;
  std::uint32_t segment_alignment_ = 0;
};

Result<void> check_alignment(std::string_view what, std::optional<std::uint32_t> alignment,
                             std::uint32_t most) {
  if (!alignment || (is_power_of_two(*alignment) && *alignment <= most)) return {};
  return make_error(ErrorCode::kInvalidArgument, what, " alignment ", *alignment,
                    ": expected a power of two from 1 to ", most);
}

}  // namespace

Result<Layout> plan(const ProgramFile& program, const ProgramLayoutOptions& options) {
  return without_exceptions([&]() -> Result<Layout> {
    ETSTREAM_TRY(check_alignment("segment", options.segment_alignment, kMostSegmentAlignment));
    ETSTREAM_TRY(check_alignment("constant tensor", options.constant_tensor_alignment, kMostInlineAlignment));
    ETSTREAM_TRY(check_alignment("delegate", options.delegate_alignment, kMostInlineAlignment));
    if (!options.segment_alignment && !options.constant_tensor_alignment && !options.delegate_alignment &&
        !options.delegates) {
      return plan_copy(program.file(), "program");
    }
    return ProgramPlanner(program, program.parts(), options).run();
  });
}

}  // namespace etstream
