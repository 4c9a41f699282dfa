// SPDX-License-Identifier: BSD-3-Clause
#include "core/packed/packed_checks.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/packed/arrangements.h"

namespace etstream::packed {
namespace {

/// Checks a field that has one right value.
template <class Field, class Right>
Result<void> check_field(const std::string& name, std::uint64_t offset, std::string_view field, Field found,
                         Right right) {
  if (found == right) return {};
  return unexpected(ErrorCode::kCorrupt, {name, offset}, "{} {}, found {}", field, right, found);
}

Result<void> check_skippable(const std::string& name, std::uint64_t offset, const FrameStart& frame) {
  return check_field(name, offset, "the number of a skippable frame,", frame.magic, kSkippable);
}

/// Checks an identifier of four characters.
Result<void> check_identifier(const std::string& name, std::uint64_t offset, std::uint32_t found,
                              std::uint32_t right) {
  if (found == right) return {};
  const auto characters = [](const std::uint32_t& number) {
    return quote({reinterpret_cast<const char*>(&number), sizeof(number)});
  };
  return unexpected(ErrorCode::kCorrupt, {name, offset}, "the identifier {}, found {}", characters(right),
                    characters(found));
}

Result<void> check_version(const std::string& name, std::uint64_t offset, std::uint32_t version) {
  if (version == kVersion) return {};
  return with_advice(unexpected(ErrorCode::kUnsupported, {name, offset},
                                "a packed file of version {}, found version {}", kVersion, version),
                     {"a newer etstream reads it"});
}

/// Checks the size of the frames of `size` bytes.
Result<void> check_coded_size(const PieceHeader& header, std::uint32_t size, const std::string& name,
                              std::uint64_t offset) {
  const std::uint32_t least = size == 0 ? 0 : 1;
  const std::uint32_t most = size == 0 ? 0 : size + kMostOverhead;
  if (header.coded_size >= least && header.coded_size <= most) return {};
  return unexpected(ErrorCode::kCorrupt, {name, offset + offsetof(PieceHeader, coded_size)},
                    "{} to {} coded bytes for {}, found {}", least, most, size, header.coded_size);
}

}  // namespace

Result<void> check(const FileHeader& header, const std::string& name) {
  const FileHeader right;
  if (header.frame.magic != kSkippable || header.identifier != right.identifier) {
    return unexpected(ErrorCode::kUnsupported, {name, 0}, "a packed file (ETZ1), found another kind");
  }
  ETSTREAM_TRY(check_version(name, offsetof(FileHeader, version), header.version));
  if (header.kind > kDerived) {
    return unexpected(ErrorCode::kUnsupported, {name, offsetof(FileHeader, kind)}, "kind {} to {}, found {}",
                      kWhole, kDerived, header.kind);
  }
  const std::uint32_t least =
      right.frame.size + (header.kind != kWhole ? std::uint32_t{sizeof(BaseHeader)} : 0);
  if (header.frame.size < least || header.frame.size > kMostHeader) {
    return unexpected(ErrorCode::kCorrupt, {name, offsetof(FrameStart, size)},
                      "a header of {} to {} bytes, found {}", least, kMostHeader, header.frame.size);
  }
  return check_field(name, offsetof(FileHeader, piece_size), "pieces of", header.piece_size, kPieceSize);
}

Result<void> check(const RecipeHeader& header, const std::string& name, std::uint64_t offset) {
  ETSTREAM_TRY(check_skippable(name, offset, header.frame));
  ETSTREAM_TRY(check_identifier(name, offset + offsetof(RecipeHeader, identifier), header.identifier,
                                RecipeHeader().identifier));
  const std::uint32_t size = header.frame.size;
  if (size > sizeof(header.identifier) && size <= sizeof(header.identifier) + kMostRecipe) return {};
  return unexpected(ErrorCode::kCorrupt, {name, offset + offsetof(FrameStart, size)},
                    "a recipe of up to {} bytes behind an identifier of {}, found {}", kMostRecipe,
                    sizeof(header.identifier), size);
}

Result<void> check(const PieceHeader& header, std::uint32_t kind, const std::string& name,
                   std::uint64_t offset) {
  const PieceHeader right;
  ETSTREAM_TRY(check_skippable(name, offset, header.frame));
  if (kind != kWhole) {
    const std::uint32_t least = right.frame.size + sizeof(RunsHeader) + sizeof(Run);
    const std::uint32_t most = right.frame.size + kMostRunBytes;
    const std::uint32_t size = header.frame.size;
    if (size < least || size > most || (size - least) % sizeof(Run) != 0) {
      return unexpected(ErrorCode::kCorrupt, {name, offset + offsetof(FrameStart, size)},
                        "a header of {} bytes and {} more for each of up to {}, found {}",
                        least - sizeof(Run), sizeof(Run), counted(kMostRuns, "run"), size);
    }
  } else {
    ETSTREAM_TRY(check_field(name, offset + offsetof(FrameStart, size), "a header of", header.frame.size,
                             right.frame.size));
  }
  ETSTREAM_TRY(check_identifier(name, offset + offsetof(PieceHeader, identifier), header.identifier,
                                right.identifier));
  if (header.original_size == 0 || header.original_size > kPieceSize) {
    return unexpected(ErrorCode::kCorrupt, {name, offset + offsetof(PieceHeader, original_size)},
                      "a piece of 1 to {} bytes, found {}", kPieceSize, header.original_size);
  }
  if (kind == kWhole) ETSTREAM_TRY(check_coded_size(header, header.original_size, name, offset));
  const Arrangement& arrangement = header.arrangement;
  const std::uint64_t at = offset + offsetof(PieceHeader, arrangement);
  const std::uint32_t size = arrangement.element_size;
  if (size != 1 && size != 2 && size != 4) {
    return unexpected(ErrorCode::kCorrupt, {name, at}, "elements of 1, 2 or 4 bytes, found {}", size);
  }
  if (arrangement.rotation > (size > 1 ? 1U : 0U)) {
    return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(Arrangement, rotation)},
                      "elements of {} rotated by at most {}, found {}", counted(size, "byte"),
                      counted(size > 1 ? 1 : 0, "bit"), arrangement.rotation);
  }
  if (arrangement.first_element >= size) {
    return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(Arrangement, first_element)},
                      "fewer than {} before the first element, found {}", counted(size, "byte"),
                      arrangement.first_element);
  }
  return {};
}

Result<void> check(const PieceHeader& header, const RunsHeader& runs_header, std::span<const Run> runs,
                   std::uint64_t base_size, const std::string& name, std::uint64_t offset) {
  const std::uint64_t at = offset + sizeof(header);
  if (runs_header.sparse_planes >> header.arrangement.element_size != 0) {
    return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(RunsHeader, sparse_planes)},
                      "sparse planes among {}, found the bits {}", header.arrangement.element_size,
                      runs_header.sparse_planes);
  }
  if (runs_header.window_size > kPieceSize) {
    return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(RunsHeader, window_size)},
                      "a window of at most {} bytes, found {}", kPieceSize, runs_header.window_size);
  }
  if (!range_fits(runs_header.window_offset, runs_header.window_size, base_size)) {
    return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(RunsHeader, window_offset)},
                      "the offset of a window of {} bytes in a base of {}, found {}", runs_header.window_size,
                      base_size, runs_header.window_offset);
  }
  std::uint32_t left = header.original_size;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const std::uint64_t run_at = at + sizeof(runs_header) + i * sizeof(run);
    const std::uint32_t least = i + 1 == runs.size() ? std::max(left, 1U) : 1;
    if (run.size < least || run.size > left) {
      return unexpected(ErrorCode::kCorrupt, {name, run_at + offsetof(Run, size)},
                        "run {} of {} to {} bytes, found {}", i, least, left, run.size);
    }
    left -= run.size;
    if (run.method > 2 && run.method != 4 && run.method != kSame) {
      return unexpected(ErrorCode::kCorrupt, {name, run_at + offsetof(Run, method)},
                        "method 0, 1, 2, 4 or {}, found {}", kSame, run.method);
    }
    const std::uint64_t base_at = run_at + offsetof(Run, base_offset);
    if (run.method == kNew) {
      ETSTREAM_TRY(check_field(name, base_at, "for new bytes the offset", run.base_offset, 0U));
    } else if (!range_fits(run.base_offset, run.size, base_size)) {
      return unexpected(ErrorCode::kCorrupt, {name, base_at},
                        "the offset of {} bytes in a base of {}, found {}", run.size, base_size,
                        run.base_offset);
    }
  }
  return check_coded_size(header, content_size(runs), name, offset);
}

Result<void> check(const FrameStart& table, std::uint64_t pieces, const std::string& name,
                   std::uint64_t offset) {
  ETSTREAM_TRY(check_skippable(name, offset, table));
  return check_field(name, offset + offsetof(FrameStart, size), "a table of", std::uint64_t{table.size},
                     table_size(pieces));
}

Result<void> check(const Footer& footer, const std::string& name, std::uint64_t size) {
  const std::uint64_t at = size - sizeof(Footer);
  const auto is_footer =
      check_identifier(name, at + offsetof(Footer, identifier), footer.identifier, Footer().identifier);
  if (!is_footer) {
    return with_advice(is_footer.error(),
                       {"the end of the file is missing, or is followed by other bytes; get it again"});
  }
  ETSTREAM_TRY(check_version(name, at + offsetof(Footer, version), footer.version));
  ETSTREAM_TRY(
      check_field(name, at + offsetof(Footer, reserved), "the reserved number", footer.reserved, 0U));
  ETSTREAM_TRY(check_field(name, at + offsetof(Footer, piece_count), "as many pieces as the size tells,",
                           std::uint64_t{footer.piece_count}, pieces_of(footer.original_size)));
  const std::uint64_t table = sizeof(FrameStart) + table_size(footer.piece_count);
  if (table <= size && footer.table_offset == size - table) return {};
  return unexpected(ErrorCode::kCorrupt, {name, at + offsetof(Footer, table_offset)},
                    "the offset of a table of {} bytes that ends the file of {}, found {}", table, size,
                    footer.table_offset);
}

Result<void> check_table_hash(const Footer& footer, ContentHasher& hash, const std::string& name,
                              std::uint64_t size) {
  Footer hashed = footer;
  hashed.table_hash = {};
  hash.update(bytes_of(hashed));
  if (footer.table_hash == hash.hash()) return {};
  return unexpected(ErrorCode::kCorrupt, {name, size - sizeof(Footer) + offsetof(Footer, table_hash)},
                    "the hash of the table of pieces, found that of other bytes");
}

}  // namespace etstream::packed
