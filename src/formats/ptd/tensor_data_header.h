// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a .ptd file: where its flatbuffer ends, and where its segments are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace etstream {

/// The header as it lies at offset 8, little-endian (extension/flat_tensor/serialize of ExecuTorch 1.5.1).
/// The flatbuffer's first 8 bytes lie before the header, and the others follow it. The flatbuffer's size does
/// not count the header. Its offset is the header's length with the padding behind it, so that offset and
/// size add up to the flatbuffer's end. Offsets are from the start of the file.
struct TensorDataHeader {
  static constexpr std::uint64_t kPosition = 8;
  static constexpr std::string_view kMagic = "FH01";
  static constexpr std::uint32_t kSize = 40;
  static constexpr std::uint32_t kPaddedSize = 48;  // as ExecuTorch writes it

  std::array<char, 4> magic = {'F', 'H', '0', '1'};
  std::uint32_t length = kSize;
  std::uint64_t flatbuffer_offset = kPaddedSize;
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t segment_base_offset = 0;
  std::uint64_t segment_data_size = 0;

  [[nodiscard]] std::uint64_t flatbuffer_end() const noexcept { return flatbuffer_offset + flatbuffer_size; }
};
static_assert(sizeof(TensorDataHeader) == TensorDataHeader::kSize);

}  // namespace etstream
