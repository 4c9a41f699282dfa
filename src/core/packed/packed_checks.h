// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of the structures of a packed file, for its two readers. Errors: kCorrupt with the offset of the
// field, or kUnsupported for another kind of file or a later version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/hashes.h"
#include "core/packed/packed_format.h"
#include "etstream/result.h"

namespace etstream::packed {

/// Checks the first bytes of the file, also of an update.
[[nodiscard]] Result<void> check(const FileHeader& header, const std::string& name);

/// Checks the header of a recipe, at `offset`.
[[nodiscard]] Result<void> check(const RecipeHeader& header, const std::string& name, std::uint64_t offset);

/// Checks the header of a piece at `offset`, by itself. `kind` is that of the file.
[[nodiscard]] Result<void> check(const PieceHeader& header, std::uint32_t kind, const std::string& name,
                                 std::uint64_t offset);

/// Returns how many runs follow the header of a piece of an update, which was checked.
[[nodiscard]] constexpr std::size_t run_count(const PieceHeader& header) noexcept {
  return (header.frame.size - PieceHeader().frame.size - sizeof(RunsHeader)) / sizeof(Run);
}

/// Checks what follows the header of a piece of an update, which begins at `offset`. `base_size` is the
/// base's, in bytes.
[[nodiscard]] Result<void> check(const PieceHeader& header, const RunsHeader& runs_header,
                                 std::span<const Run> runs, std::uint64_t base_size, const std::string& name,
                                 std::uint64_t offset);

/// Checks the start of the frame of the table of `pieces`, at `offset`.
[[nodiscard]] Result<void> check(const FrameStart& table, std::uint64_t pieces, const std::string& name,
                                 std::uint64_t offset);

/// Checks the last bytes of a file of `size` bytes, by themselves.
[[nodiscard]] Result<void> check(const Footer& footer, const std::string& name, std::uint64_t size);

/// Checks the hash in the footer against that of the offsets before it, which `hash` has hashed.
[[nodiscard]] Result<void> check_table_hash(const Footer& footer, ContentHasher& hash,
                                            const std::string& name, std::uint64_t size);

}  // namespace etstream::packed
