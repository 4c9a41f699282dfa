// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a .ptd file: where its flatbuffer ends, and where its segments are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_verifier.h"

namespace etstream {

/// At offset 8: magic, u32 length, u64 flatbuffer offset, u64 flatbuffer size, u64 segment base offset, u64
/// segment data size (extension/flat_tensor/serialize of ExecuTorch 1.5.1). The flatbuffer's first 8 bytes
/// are the file's, the others follow the header; its size is that without the header, and its offset the
/// header's length with the padding behind it, so that both add up to where it ends. Offsets are from the
/// start of the file.
struct TensorDataHeader {
  static constexpr std::uint64_t kPosition = 8;
  static constexpr std::string_view kMagic = "FH01";
  static constexpr std::uint32_t kSize = 40;

  [[nodiscard]] UsedRange range() const noexcept { return {kPosition, kPosition + length}; }

  std::uint32_t length = 0;
  std::uint64_t flatbuffer_offset = 0;
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t segment_base_offset = 0;
  std::uint64_t segment_data_size = 0;

  [[nodiscard]] std::uint64_t flatbuffer_end() const noexcept { return flatbuffer_offset + flatbuffer_size; }
};

/// That of `file`; its ranges are inside the file, segments behind the flatbuffer. Errors: kCorrupt, also
/// where there is none; kIo.
[[nodiscard]] Result<TensorDataHeader> read_tensor_data_header(const ByteSource& file);

/// What ExecuTorch pads the header to.
inline constexpr std::uint32_t kPaddedTensorDataHeader = 48;

/// The header with its padding.
[[nodiscard]] std::vector<std::byte> tensor_data_header_bytes(const TensorDataHeader& header);

}  // namespace etstream
