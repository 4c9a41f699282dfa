// SPDX-License-Identifier: BSD-3-Clause
//
// What a ProgramFile is made of, for the files that implement it.
#pragma once

#include <cstdint>

#include "etstream/program.h"
#include "schema/flatbuffer_view.h"

namespace etstream {

/// At offset 8 of a program with segments: magic, u32 length, u64 program size, u64 segment base offset, and,
/// since ExecuTorch 1.0, u64 segment data size (schema/extended_header.h of ExecuTorch 1.5.1). The program
/// size counts the flatbuffer with this header in it; offsets are from the start of the file.
struct ExtendedHeader {
  static constexpr std::uint64_t kPosition = 8;
  static constexpr std::string_view kMagic = "eh00";
  static constexpr std::uint32_t kSmallest = 24;  // without the segment data size
  static constexpr std::uint32_t kSize = 32;

  std::uint32_t length = 0;  // 0: there is none
  std::uint64_t program_size = 0;
  std::uint64_t segment_base_offset = 0;
  std::uint64_t segment_data_size = 0;
};

struct ProgramFile::Parts {
  ByteSource file;
  ExtendedHeader header;
  FlatbufferView view;  // of the flatbuffer alone
};

}  // namespace etstream
