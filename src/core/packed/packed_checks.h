// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of the structures of a packed file, for its two readers. Errors: kCorrupt with the offset of the
// field, or kUnsupported for another kind of file or a later version.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/content_hash.h"
#include "core/packed/packed_format.h"
#include "etstream/result.h"

namespace etstream::packed {

/// Checks the first bytes of the file.
[[nodiscard]] Result<void> check(const FileHeader& header, const std::string& name);

/// Checks the header of a piece at `offset`, by itself.
[[nodiscard]] Result<void> check(const PieceHeader& header, const std::string& name, std::uint64_t offset);

/// Checks the start of the frame of the table of `pieces`, at `offset`.
[[nodiscard]] Result<void> check(const FrameStart& table, std::uint64_t pieces, const std::string& name,
                                 std::uint64_t offset);

/// Checks the last bytes of a file of `size` bytes, by themselves.
[[nodiscard]] Result<void> check(const Footer& footer, const std::string& name, std::uint64_t size);

/// Checks the hash in the footer against that of the offsets before it, which `hash` has hashed.
[[nodiscard]] Result<void> check_table_hash(const Footer& footer, ContentHasher& hash,
                                            const std::string& name, std::uint64_t size);

}  // namespace etstream::packed
