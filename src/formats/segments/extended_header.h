// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch's extended header: the end of a flatbuffer in a file, and the place of its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_verifier.h"

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

}  // namespace etstream
