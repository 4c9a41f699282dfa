// SPDX-License-Identifier: BSD-3-Clause
#include "pte/unmet_alignment.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "pte/delegate_references.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostHeaderAlignment = 65536;

/// What the header is padded to. Behind it the flatbuffer goes on at once, but for padding to less than that.
Result<std::uint64_t> header_alignment(const FlatbufferView& flatbuffer) {
  const std::uint64_t begin = ExtendedHeader::kPosition + ExtendedHeader::kSize;
  const std::uint64_t end = std::min(flatbuffer.file().size(), begin + 2 * kMostHeaderAlignment);
  ETSTREAM_ASSIGN(const auto first, flatbuffer.find_nonzero(begin, end));
  return std::min(kMostHeaderAlignment,
                  std::bit_floor((first ? first->offset : end) - ExtendedHeader::kPosition));
}

/// Whether some delegate's data in the flatbuffer lies at a multiple of `alignment`.
Result<bool> has_aligned_inline_data(const pte::Program& program, std::uint64_t alignment) {
  ETSTREAM_ASSIGN(const auto entries, program.inline_delegates());
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::InlineDelegate entry, entries.at(i));
    ETSTREAM_ASSIGN(const auto data, entry.vector(program.fields().inline_delegate.data));
    if (data && data->count > 0 && data->elements() % alignment == 0) return true;
  }
  return false;
}

/// The segment of constants, if some tensor but the first lies at a multiple of `alignment` in it, as all do.
Result<std::optional<std::uint32_t>> aligned_constants(const pte::Program& program, std::uint64_t alignment) {
  ETSTREAM_ASSIGN(const auto constants, program.constants());
  if (!constants) return std::optional<std::uint32_t>();
  ETSTREAM_ASSIGN(const auto offsets, constants->all_offsets());
  std::uint64_t bits = 0;
  for (const std::uint64_t offset : offsets) bits |= offset;
  if (bits == 0 || bits % alignment != 0) return std::optional<std::uint32_t>();
  ETSTREAM_ASSIGN(const std::uint32_t segment, constants->segment());
  return std::optional(segment);
}

}  // namespace

Result<void> warn_of_unmet_alignment(const pte::Program& program, Findings& findings) {
  if (program.header().length != ExtendedHeader::kSize) return {};
  ETSTREAM_ASSIGN(const std::uint64_t alignment, header_alignment(program.view()));
  if (alignment <= ExtendedHeader::kSize) return {};
  ETSTREAM_ASSIGN(const bool is_for_inline_data, has_aligned_inline_data(program, alignment));
  if (is_for_inline_data) return {};
  ETSTREAM_ASSIGN(const auto segments, program.segments());
  const auto warn = [&](const SegmentInfo& segment, std::string_view what, std::string_view option) {
    const Error lost = program.view().corrupt(
        segment.offset, text("{} at a multiple of {}, as the program was exported for", what, alignment),
        text("it where segments lie; strict_alignment with {} {} moves it", option, alignment));
    add_warning(findings, lost);
  };
  ETSTREAM_ASSIGN(const auto constants, aligned_constants(program, alignment));
  if (constants) {
    if (*constants < segments.size() && segments[*constants].offset % alignment != 0) {
      warn(segments[*constants], "the segment of constants", "constant_tensor_alignment");
    }
    return {};
  }
  ETSTREAM_ASSIGN(const auto delegates, read_delegate_references(program));
  for (const DelegateReference& reference : delegates) {
    if (!reference.in_segment || reference.index >= segments.size()) continue;
    if (segments[reference.index].offset % alignment == 0) continue;
    warn(segments[reference.index], "the data of a delegate", "delegate_alignment");
    return {};
  }
  return {};
}

}  // namespace etstream
