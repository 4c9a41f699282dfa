// SPDX-License-Identifier: BSD-3-Clause
//
// An object file (ELF, relocatable) with the bytes of a file as a constant: System V gABI 4.1, and the
// supplement of each processor's ABI.
#pragma once

#include <cstdint>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/embedded_file.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream::elf {

/// A section with the data; three symbols in it: that of the data, SYMBOL_end behind it, and SYMBOL_size, a
/// number as wide as an address.
struct ObjectFile {
  ByteSource data;
  std::string symbol;
  std::string section;
  std::uint64_t alignment = 1;  // of the data in memory, a power of two
  ObjectTarget target = ObjectTarget::kArm;
};

/// Plans it front to back: header, data, size, symbols, names, section headers. Error: kTooLarge over 4 GiB
/// for 32 bits.
[[nodiscard]] Result<FilePlan> plan(const ObjectFile& file);

}  // namespace etstream::elf
