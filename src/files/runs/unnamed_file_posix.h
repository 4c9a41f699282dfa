// SPDX-License-Identifier: BSD-3-Clause
//
// Files for a process that runs programs.
#pragma once

#include <cstdint>

#include "core/io/descriptor_posix.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Makes an empty file without a name in $TMPDIR, or /var/tmp, as /tmp is often in memory.
[[nodiscard]] Result<Descriptor> make_unnamed_file();

/// Appends all of `source` to an open file.
[[nodiscard]] Result<void> copy_to(int descriptor, const ByteSource& source);

/// Returns the regular file that `source` is all of, or a copy in a file without a name.
[[nodiscard]] Result<Descriptor> as_file(const ByteSource& source);

/// Returns `size` bytes of an open file, from `offset` on. The file must live as long.
[[nodiscard]] ByteSource source_of_descriptor(int descriptor, std::uint64_t offset, std::uint64_t size);

/// Puts `value` in the place of the four bytes at `offset`, little-endian.
[[nodiscard]] Result<void> put_uint32(int descriptor, std::uint64_t offset, std::uint32_t value);

}  // namespace etstream
