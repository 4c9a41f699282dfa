// SPDX-License-Identifier: BSD-3-Clause
//
// The parts that programs and tensor data files have alike: ExecuTorch's extended header, which tells the end
// of a flatbuffer in a file, the segments behind it, and tables with a tensor's element type, sizes and
// dim_order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// The header at offset 8 of a file with segments: magic, u32 length, u64 program size, u64 segment base
/// offset, and, since ExecuTorch 1.0, u64 segment data size (schema/extended_header.h of ExecuTorch 1.5.1).
/// The program size counts the flatbuffer with this header in it; offsets are from the start of the file.
struct ExtendedHeader {
  static constexpr std::uint64_t kPosition = 8;
  static constexpr std::string_view kMagic = "eh00";
  static constexpr std::uint32_t kSmallest = 24;  // without the segment data size
  static constexpr std::uint32_t kSize = 32;

  [[nodiscard]] UsedRange range() const noexcept { return {kPosition, kPosition + length}; }

  std::uint32_t length = 0;  // 0: there is none
  std::uint64_t program_size = 0;
  std::uint64_t segment_base_offset = 0;
  std::uint64_t segment_data_size = 0;
};

/// Reads the header of `file`, which messages call `name`. Its ranges are inside the file, and segments begin
/// behind the flatbuffer. A base offset without a data size is not checked here, but when segments are read.
/// For a file without a header, the length is 0 and the program size is the file's size. Errors: kCorrupt,
/// kIo.
[[nodiscard]] Result<ExtendedHeader> read_extended_header(const ByteSource& file, const std::string& name);

/// Fills the first ExtendedHeader::kSize bytes of `out`.
void write_extended_header(const ExtendedHeader& header, std::span<std::byte> out);

/// The fields of a segment that programs and tensor data files list.
struct DataSegmentFields {
  template <class Table>
  DataSegmentFields(const Table& table) : offset(table.offset), size(table.size) {}  // NOLINT: converts
  BoundField offset;
  BoundField size;
};

/// Returns the listed segments, which are inside `file`; `use` is empty. `base_offset` is that of the header.
/// Errors: kCorrupt, kIo.
[[nodiscard]] Result<std::vector<SegmentInfo>> read_segments(const TableList& listed,
                                                             const DataSegmentFields& fields,
                                                             const ByteSource& file,
                                                             std::uint64_t base_offset);

/// Returns the power of two, up to 65536, that segments were aligned to, as far as their places show it. One
/// segment alone may lie at a multiple of more than that by chance: with one or none, returns at most 128,
/// ExecuTorch's default.
[[nodiscard]] std::uint64_t observed_alignment(std::span<const SegmentInfo> segments) noexcept;

/// The part of a file where segments may be.
struct SegmentRoom {
  std::string_view whole;  // what messages call all of it: "the program"
  std::uint64_t metadata_end = 0;
  std::uint64_t base_offset = 0;
  std::uint64_t data_size = 0;      // as the header says
  std::uint64_t size_position = 0;  // where it says so
};

/// Adds errors for segments in the metadata. Adds warnings for segments that overlap or are unaligned, for
/// bytes between them that are not zero, and for a data size that ends too early. Error: kIo.
[[nodiscard]] Result<void> check_segments(const FlatbufferView& view, const ByteSource& file,
                                          std::span<const SegmentInfo> segments, const SegmentRoom& room,
                                          Findings& findings);

/// The fields of a tensor's shape.
struct ShapeFields {
  template <class Table>
  ShapeFields(const Table& table)  // NOLINT: converts
      : scalar_type(table.scalar_type), sizes(table.sizes), dim_order(table.dim_order) {}
  BoundField scalar_type;
  BoundField sizes;
  BoundField dim_order;
};

/// Reads the layout from such a table, whose fields are bound. Errors: those of FlatbufferView.
[[nodiscard]] Result<TensorLayout> read_tensor_layout(const TableReader& tensor, const ShapeFields& fields);

/// Adds to `findings` the problems of the shape in such a table. Returns the size of its data in bytes;
/// nothing if the table does not tell.
[[nodiscard]] Result<std::optional<std::uint64_t>> check_shape(const TableReader& tensor,
                                                               const ShapeFields& fields, Findings& findings);

}  // namespace etstream
