// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/memory_alignment.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/try.h"
#include "files/any_file.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/extended_header.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLeast = 16;

std::uint64_t of_segments(std::span<const SegmentInfo> segments) {
  const bool has_bytes = std::ranges::any_of(segments, [](const auto& each) { return each.size > 0; });
  return has_bytes ? observed_alignment(segments) : 1;
}

/// Returns what of an alignment counts for a file with the data at `offset`: at other multiples it would not
/// be there.
std::uint64_t at_offset(std::uint64_t offset, std::uint64_t alignment) {
  while (offset % alignment != 0) alignment /= 2;
  return alignment;
}

Result<std::uint64_t> alignment_of(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  const std::uint64_t alignment = std::max(kLeast, of_segments(segments));
  if (program.extended_header_size() == 0) return alignment;
  ETSTREAM_ASSIGN(const std::uint64_t header, program.model().header_alignment());
  return header > ExtendedHeader::kSize ? std::max(alignment, header) : alignment;
}

Result<std::uint64_t> alignment_of(const TensorDataFile& file) {
  ETSTREAM_ASSIGN(const auto segments, file.segments());
  return std::max(kLeast, of_segments(segments));
}

Result<std::uint64_t> alignment_of(const BundledProgramFile& bundle) {
  const auto program = bundle.open_program();
  if (!program) return kLeast;
  ETSTREAM_ASSIGN(const std::uint64_t alignment, alignment_of(*program));
  return std::max(kLeast, at_offset(bundle.program_offset(), alignment));
}

Result<std::uint64_t> alignment_of(const FatContainerFile& container) {
  std::uint64_t out = kLeast;
  for (const FatPayload& payload : container.payloads()) {
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    if (!kind || *kind == FileKind::kFatContainer) continue;
    ETSTREAM_ASSIGN(const std::uint64_t alignment, memory_alignment(payload.data));
    out = std::max(out, at_offset(payload.offset, alignment));
  }
  return out;
}

}  // namespace

Result<std::optional<std::uint64_t>> memory_alignment(const AnyFile& file) {
  const auto needed = [](const auto& opened) -> Result<std::optional<std::uint64_t>> {
    if constexpr (requires { alignment_of(opened); }) {
      ETSTREAM_ASSIGN(const std::uint64_t alignment, alignment_of(opened));
      return std::optional(alignment);
    } else {
      return std::optional<std::uint64_t>();
    }
  };
  return match(file, needed);
}

Result<std::uint64_t> memory_alignment(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::uint64_t> {
    const auto opened = open_any(file);
    if (!opened && opened.error().code == ErrorCode::kUnsupported) return kLeast;
    if (!opened) return opened.error();
    ETSTREAM_ASSIGN(const auto alignment, memory_alignment(*opened));
    return alignment.value_or(kLeast);
  });
}

}  // namespace etstream
