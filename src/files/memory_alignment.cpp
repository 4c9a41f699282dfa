// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/memory_alignment.h"

#include <algorithm>
#include <span>

#include "core/base/try.h"
#include "files/any_file.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"

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

}  // namespace

Result<std::uint64_t> memory_alignment(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  const std::uint64_t alignment = std::max(kLeast, of_segments(segments));
  if (program.model().header().length == 0) return alignment;
  ETSTREAM_ASSIGN(const std::uint64_t header, program.model().header_alignment());
  return header > ExtendedHeader::kSize ? std::max(alignment, header) : alignment;
}

Result<std::uint64_t> memory_alignment(const BundledProgramFile& bundle, const ProgramFile& program) {
  ETSTREAM_ASSIGN(const std::uint64_t alignment, memory_alignment(program));
  return std::max(kLeast, at_offset(bundle.program_offset(), alignment));
}

Result<std::uint64_t> memory_alignment(const TensorDataFile& file) {
  ETSTREAM_ASSIGN(const auto segments, file.segments());
  return std::max(kLeast, of_segments(segments));
}

Result<std::uint64_t> memory_alignment(const FatContainerFile& container) {
  std::uint64_t out = kLeast;
  for (const FatPayload& payload : container.payloads()) {
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    if (!kind || *kind == FileKind::kFatContainer) continue;
    ETSTREAM_ASSIGN(const std::uint64_t alignment, memory_alignment(payload.data));
    out = std::max(out, at_offset(payload.offset, alignment));
  }
  return out;
}

Result<std::uint64_t> memory_alignment(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::uint64_t> {
    const auto opened = open_any(file);
    if (!opened && opened.error().code == ErrorCode::kUnsupported) return kLeast;
    if (!opened) return opened.error();
    const auto of_bundle = [](const BundledProgramFile& bundle) -> Result<std::uint64_t> {
      const auto program = bundle.open_program();
      return program ? memory_alignment(bundle, *program) : kLeast;
    };
    const auto of_other = [](const auto& other) -> Result<std::uint64_t> {
      if constexpr (requires { memory_alignment(other); }) return memory_alignment(other);
      return kLeast;  // the runtime does not load it
    };
    return match(*opened, of_bundle, of_other);
  });
}

}  // namespace etstream
