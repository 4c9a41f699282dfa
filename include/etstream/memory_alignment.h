// SPDX-License-Identifier: BSD-3-Clause
//
// The alignment that a file needs where it lies in memory, as when a linker places it in a board's flash.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto alignment = etstream::memory_alignment(file);
//   if (!alignment) return alignment.error();
//   std::printf("alignas(%llu)\n", static_cast<unsigned long long>(*alignment));
#pragma once

#include <cstdint>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the multiple of bytes, a power of two from 16 to 65536, that `file` must begin at, so that
/// everything in it lies as it was written to lie:
/// - a program or tensor data: 16, the largest that ExecuTorch's loader asks for (alignof(max_align_t), in
///   runtime/executor/program.cpp of 1.5.1), or more if its segments or the padding of its header show that
///   it was written for more;
/// - a bundle or a fat container: what the programs inside need, as far as their offsets allow it. The
///   program of a bundle from Arm's compiler begins at a multiple of 16 and of no more.
/// - anything else: 16.
/// Errors: kCorrupt for a file that begins as one of these and is none; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::uint64_t> memory_alignment(const ByteSource& file);

}  // namespace etstream
